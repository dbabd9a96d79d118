package dynamostate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluicehq/sluice/internal/latectx"
	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

const (
	// spread is the number of partitions that hold the shards of one stream. A
	// partition takes 1,000 writes a second
	// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html).
	// It is part of the format: another number would not find the shards.
	spread = 8
	// atOnce bounds the concurrent requests of one call.
	atOnce = 32
)

type storedShard struct {
	Parent   string `dynamodbav:"parent"`
	Sequence string `dynamodbav:"sequence"`
	Finished bool   `dynamodbav:"finished"`
	Ahead    string `dynamodbav:"ahead"`
	Owner    string `dynamodbav:"owner"`
	Epoch    uint64 `dynamodbav:"epoch"`
	Next     string `dynamodbav:"next"`  // the owner that the shard was released for
	Moves    uint64 `dynamodbav:"moves"` // how often that one claimed it
	// Beat is the number of heartbeats of the owner when it claimed the shard, plus 1.
	// It is 0 once the position has moved. Deaths counts the owners before that died
	// with a Beat.
	Beat   uint64 `dynamodbav:"beat"`
	Deaths uint64 `dynamodbav:"deaths"`
	// Times by the clock of the writer, in seconds since 1970. They are for people:
	// nothing is decided by them.
	Claimed int64 `dynamodbav:"claimed,omitempty"` // when the owner got the shard
	Moved   int64 `dynamodbav:"moved,omitempty"`   // when the position changed last
}

// shard is a stored shard, and what only this package needs of it.
type shard struct {
	state.Shard
	next   string
	moves  uint64
	beat   uint64
	deaths uint64
}

func shardsOf(st state.Stream, part uint32) string {
	return fmt.Sprintf("shards#%d#%s#%s", part, url.QueryEscape(st.Application), st.ARN)
}

func shardKey(st state.Stream, id string) rows.Key {
	h := fnv.New32a()
	h.Write([]byte(id))
	return rows.Key{Partition: shardsOf(st, h.Sum32()%spread), Sort: id}
}

// shardOf returns the shard of a row; of a row that does not exist, an unread shard
// that nobody has.
func shardOf(row rows.Row) (shard, error) {
	v, err := decode[storedShard](row)
	return shard{state.Shard{
		ID: row.Sort, Parent: v.Parent, Owner: v.Owner, Epoch: v.Epoch,
		Position: state.Position{Sequence: v.Sequence, Finished: v.Finished, Ahead: v.Ahead},
	}, v.Next, v.Moves, v.Beat, v.Deaths}, err
}

// storedOf returns what to set in the row of a shard that was before. A zero time is not
// set: the row keeps its own.
func storedOf(before, sh shard) storedShard {
	v := storedShard{
		Parent: sh.Parent, Owner: sh.Owner, Epoch: sh.Epoch, Sequence: sh.Position.Sequence, Finished: sh.Position.Finished, Ahead: sh.Position.Ahead,
		Next: sh.next, Moves: sh.moves, Beat: sh.beat, Deaths: sh.deaths,
	}
	if sh.Owner != "" && sh.Owner != before.Owner {
		v.Claimed = time.Now().Unix()
	}
	if sh.Position != before.Position {
		v.Moved = time.Now().Unix()
	}
	return v
}

// Finish implements [state.Store].
func (s *Store) Finish(ctx context.Context, st state.Stream, shardIDs ...string) error {
	if err := errors.Join(ctx.Err(), st.Validate()); err != nil {
		return err
	}
	if err := staterules.Shards(shardIDs); err != nil {
		return err
	}
	if len(shardIDs) == 0 {
		return nil
	}
	if err := s.registerStream(ctx, st); err != nil {
		return err
	}
	return each(ctx, shardIDs, func(ctx context.Context, id string) error {
		unread := rows.Row{Key: shardKey(st, id)}
		_, err := s.rows.Write(ctx, unread, encode(storedShard{Finished: true}))
		return unlessChanged(err) // else it is stored
	})
}

// each calls do with every id, some at a time, and returns the first error.
func each(ctx context.Context, ids []string, do func(context.Context, string) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, id := range ids {
		g.Go(func() error { return do(ctx, id) })
	}
	return g.Wait()
}

// Claim implements [state.Store].
func (s *Store) Claim(ctx context.Context, st state.Stream, shardID, parent, owner string) (state.Shard, error) {
	if err := errors.Join(ctx.Err(), st.Validate()); err != nil {
		return state.Shard{}, err
	}
	if err := staterules.Claim(shardID, owner); err != nil {
		return state.Shard{}, err
	}
	// An owner without a member row counts as gone.
	if err := s.members.join(ctx, st.Application, owner); err != nil {
		return state.Shard{}, err
	}
	k := shardKey(st, shardID)
	if err := s.await(ctx, k, owner); err != nil {
		return state.Shard{}, err
	}
	before, err := s.stillHeld(ctx, st.Application, k, owner)
	if err != nil {
		return state.Shard{}, err
	}
	// A claim that is cut off may be stored: then a worker that stops does not release
	// the shard, and the next one counts a death.
	writing, end := latectx.After(ctx, joinWithin)
	defer end()
	holder, begun, first := "", shard{}, false
	claimed, err := s.change(ctx, writing, st, shardID, func(sh shard) (shard, error) {
		holder = ""
		if sh.Owner != "" && sh.Owner != owner {
			living, err := s.members.living(ctx, st.Application, sh.Owner, true)
			if err != nil {
				return sh, err
			}
			if living {
				holder = sh.Owner
				return sh, heldError{shardID, sh.Owner}
			}
			if sh, err = s.takenOver(st.Application, k, sh, owner); err != nil {
				return sh, err
			}
		}
		if sh.Owner != owner && st.ARN != staterules.Jobs {
			if err := s.mayTake(ctx, st.Application, k, sh, owner); err != nil {
				return sh, err
			}
		}
		if err := s.registerStream(ctx, st); err != nil {
			return sh, err
		}
		above := state.Shard{ID: cmp.Or(parent, sh.Parent)}
		if above.ID != "" {
			// A parent is settled before its child is claimed, so that its epoch
			// no longer changes while this claim is made.
			row, err := s.rows.Get(ctx, shardKey(st, above.ID))
			if err != nil {
				return sh, err
			}
			stored, err := shardOf(row)
			if err != nil {
				return sh, err
			}
			above.Epoch = stored.Epoch
		}
		if sh.next == owner {
			sh.moves++
		}
		first = sh.Epoch == 0
		sh.Shard, sh.next, sh.beat = sh.Claimed(above, owner), "", s.members.ownBeats(st.Application, owner)+1
		begun = sh
		return sh, nil
	})
	s.noteHeld(k, before, holder)
	if err == nil {
		s.holds(k, state.Lease{Stream: st, ShardID: shardID, Owner: owner, Epoch: claimed.Epoch}, begun, first)
	}
	s.tried(k)
	return claimed, err
}

// FirstClaim reports whether nobody has claimed a shard before the lease under which this
// Store has it. Then no other process has handled its records.
func (s *Store) FirstClaim(st state.Stream, shardID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[shardKey(st, shardID)].first
}

// heldFor is how long a shard counts as held without a look at its row. It matters
// only beside workers of an older release, which do not count what they release.
const heldFor = 10 * time.Minute

// heldShard is a shard that another owner had when its row was read last.
type heldShard struct {
	owner    string
	released uint64    // of the owner, before the row was read
	read     time.Time // zero: that number was not known then
}

// heldError is state.ErrHeld of a shard with a living owner. Its text is made when it is
// read: a worker gets thousands a second, for the shards of all others.
type heldError struct{ shard, owner string }

func (e heldError) Error() string {
	return fmt.Sprintf("%v: shard %s by %s", state.ErrHeld, e.shard, e.owner)
}
func (heldError) Unwrap() error { return state.ErrHeld }

// stillHeld returns ErrHeld, without a read, if the owner of a shard lives and has
// released nothing since this Store read the shard. Otherwise it returns the owner and
// its number of releases before the next read, for noteHeld.
func (s *Store) stillHeld(ctx context.Context, app string, k rows.Key, owner string) (heldShard, error) {
	s.mu.Lock()
	h, ok := s.held[k]
	s.mu.Unlock()
	if !ok || h.owner == owner {
		return heldShard{}, nil
	}
	living, err := s.members.living(ctx, app, h.owner, true)
	if err != nil {
		return h, err
	}
	released, ok := s.members.released(app, h.owner)
	if living && ok && released == h.released && time.Since(h.read) < heldFor {
		return h, heldError{k.Sort, h.owner}
	}
	return heldShard{owner: h.owner, released: released, read: time.Now()}, nil
}

// noteHeld notes the other living owner of a shard, if it has one. stillHeld returned
// before ahead of the read.
func (s *Store) noteHeld(k rows.Key, before heldShard, owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if owner != "" {
		delete(s.reserved, k)
	}
	switch {
	case owner == "":
		delete(s.held, k)
	case before.owner == owner:
		s.held[k] = before
	default:
		s.held[k] = heldShard{owner: owner}
	}
}

// Checkpoint implements [state.Store]. Each shard takes a request of its own.
func (s *Store) Checkpoint(ctx context.Context, cs []state.Checkpoint) []error {
	errs := make([]error, len(cs))
	byShard := make(map[rows.Key][]int)
	for i, c := range cs {
		k := shardKey(c.Lease.Stream, c.Lease.ShardID)
		byShard[k] = append(byShard[k], i)
	}
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, indices := range byShard {
		g.Go(func() error {
			for _, i := range indices {
				errs[i] = s.checkpoint(ctx, cs[i])
			}
			return nil
		})
	}
	_ = g.Wait()
	if !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return nil
	}
	return errs
}

func (s *Store) checkpoint(ctx context.Context, c state.Checkpoint) error {
	err := s.under(ctx, c.Lease, func(sh shard) (shard, error) {
		advanced, err := sh.Advanced(c)
		if advanced.Position != sh.Position {
			sh.beat, sh.deaths = 0, 0
		}
		sh.Shard = advanced
		return sh, err
	})
	if errors.Is(err, state.ErrLeaseLost) {
		s.drops(shardKey(c.Lease.Stream, c.Lease.ShardID), c.Lease)
	}
	return err
}

// Release implements [state.Store].
func (s *Store) Release(ctx context.Context, l state.Lease) error {
	k, finished := shardKey(l.Stream, l.ShardID), false
	err := s.under(ctx, l, func(sh shard) (shard, error) {
		sh.Owner, sh.next, finished = "", s.nextOwner(k, l), sh.Position.Finished
		return sh, nil
	})
	// A finished shard needs no other worker. They see its end in Shards.
	if !finished && !errors.Is(err, state.ErrLeaseLost) { // else it may have been made
		s.members.noteReleased(l.Stream.Application, l.Owner)
	}
	s.drops(k, l)
	return err
}

// under changes a shard under its lease.
func (s *Store) under(ctx context.Context, l state.Lease, to func(shard) (shard, error)) error {
	if err := errors.Join(ctx.Err(), l.Stream.Validate()); err != nil {
		return err
	}
	if l.ShardID == "" {
		return state.Shard{}.Check(l)
	}
	_, err := s.change(ctx, ctx, l.Stream, l.ShardID, func(sh shard) (shard, error) {
		if err := sh.Check(l); err != nil {
			return sh, err
		}
		return to(sh)
	})
	return err
}

// Forget implements [state.Store].
func (s *Store) Forget(ctx context.Context, st state.Stream, shardIDs ...string) error {
	if err := errors.Join(ctx.Err(), st.Validate()); err != nil {
		return err
	}
	return each(ctx, shardIDs, func(ctx context.Context, id string) error { return s.forget(ctx, st, id) })
}

func (s *Store) forget(ctx context.Context, st state.Stream, id string) error {
	k := shardKey(st, id)
	s.noteHeld(k, heldShard{}, "")
	s.unlist(k)
	return s.withRow(ctx, k, func(row rows.Row) error {
		sh, err := shardOf(row)
		if err != nil {
			return err
		}
		living := false
		if sh.Position.Finished && sh.Owner != "" {
			if living, err = s.members.living(ctx, st.Application, sh.Owner, false); err != nil {
				return err
			}
		}
		if !sh.Forgettable(func(string) bool { return living }) {
			return nil
		}
		return s.rows.Delete(ctx, row)
	})
}

// change writes what to makes of a shard. It begins with the shard as this Store
// last saw it, which saves the read. It returns an error of to only for the shard
// that is stored.
func (s *Store) change(ctx, writing context.Context, st state.Stream, id string, to func(shard) (shard, error)) (state.Shard, error) {
	k := shardKey(st, id)
	s.mu.Lock()
	row, remembered := s.seen[k]
	s.mu.Unlock()
	for {
		if !remembered {
			var err error
			if row, err = s.rows.Get(ctx, k); err != nil {
				return state.Shard{}, err
			}
		}
		sh, err := shardOf(row)
		before := sh
		if err == nil {
			sh, err = to(sh)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			var written rows.Row
			if written, err = s.rows.Write(writing, row, encode(storedOf(before, sh))); err == nil {
				s.remember(written, sh.Owner != "")
				return sh.Shard, nil
			}
			s.remember(row, false)
			if c := (*rows.ChangedError)(nil); !errors.As(err, &c) {
				return state.Shard{}, err
			}
		} else if !remembered {
			return state.Shard{}, err
		}
		remembered = false
	}
}

// remember keeps a shard's row for the next change, or forgets it.
func (s *Store) remember(row rows.Row, keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if keep {
		s.seen[row.Key] = row
	} else {
		delete(s.seen, row.Key)
	}
}
