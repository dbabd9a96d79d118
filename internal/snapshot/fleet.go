package snapshot

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/job"
	"github.com/sluicehq/sluice/state"
)

// Workers that share a store read a table together. Each segment is a job that a worker
// claims, as it claims a shard. Who changes the head first begins or finishes the
// backfill. A segment's progress is stored under its epoch, where no later owner writes,
// and its end under owner and epoch. So a worker that lost a segment spoils nothing.

const (
	lookOpen = time.Second     // between two looks, while a segment is free
	lookHeld = 5 * time.Second // while all are held
	atOnce   = 2               // segments that a worker claims at a look: others get theirs
)

// fleet is the claims of a worker; nil if the store has one process.
type fleet struct {
	owner *job.Owner
	store job.Store // the owner's
	book  *book
	most  int // segments that this worker reads side by side
}

func (s *Source) newFleet(b *book) *fleet {
	store, ok := s.o.Store.(job.Store)
	if !ok {
		return nil
	}
	owner := job.NewOwner(store)
	return &fleet{owner: owner, store: owner.Store, book: b, most: perProcessor * runtime.GOMAXPROCS(0)}
}

// call makes one call to the store within its time.
func (f *fleet) call(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.book.timeout)
	defer cancel()
	return do(ctx)
}

func (f *fleet) claim(ctx context.Context, id string) (l state.Lease, p state.Position, err error) {
	err = f.call(ctx, func(ctx context.Context) error {
		owner := f.owner.Name()
		sh, err := f.store.Claim(ctx, job.Stream(f.book.app), id, "", owner)
		l, p = state.Lease{Stream: job.Stream(f.book.app), ShardID: id, Owner: owner, Epoch: sh.Epoch}, sh.Position
		return err
	})
	return l, p, err
}

func (f *fleet) checkpoint(ctx context.Context, l state.Lease, p state.Position) error {
	return f.call(ctx, func(ctx context.Context) error { return job.Checkpoint(ctx, f.store, l, p) })
}

func (f *fleet) release(ctx context.Context, l state.Lease) {
	_ = f.call(ctx, func(ctx context.Context) error { return f.store.Release(ctx, l) }) // else the owner's end does
}

// taken reports whether err says that others have what was claimed.
func taken(err error) bool {
	return errors.Is(err, state.ErrHeld) || errors.Is(err, state.ErrDeadly) || errors.Is(err, state.ErrFenced) || errors.Is(err, state.ErrLeaseLost)
}

// errAnew says that another worker has begun the backfill anew.
var errAnew = errors.New("another worker began the backfill anew: give all workers the same options, and start this one again")

// over reports whether the backfill is finished. It must be asked after a claim, too: the
// rows of a finished backfill are deleted, and a claim makes a new one.
func (s *Source) over(ctx context.Context) (bool, error) {
	now := *s.book
	if ok, err := now.load(ctx, s.log); err != nil {
		return false, err
	} else if !ok || now.head.Generation != s.book.head.Generation {
		return false, errAnew
	}
	if now.head.Finished.IsZero() {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.segments {
		if g.lose != nil {
			g.lose()
		}
	}
	s.whole, s.segments = &now.head, nil
	return true, nil
}

// share begins segments that this worker can claim, until all are finished by anybody, or
// ctx ends. It tries again what fails.
func (s *Source) share(ctx context.Context, begin func(*segment)) error {
	for {
		pause, err := s.shareOnce(ctx, begin)
		switch {
		case ctx.Err() != nil || err == nil && pause == 0:
			return nil
		case errors.Is(err, errAnew):
			return fmt.Errorf("snapshot: table %q: %w", s.o.Table, err)
		case err != nil:
			pause = lookOpen
			s.health.tellSave.Do(func() { s.log.Warn("the segments of the backfill cannot be shared; it is tried again", "error", err) })
		}
		if backoff.Sleep(ctx, pause) != nil {
			return nil
		}
	}
}

// shareOnce looks at all segments and begins free ones. It returns when to look again; 0 if
// all are finished.
func (s *Source) shareOnce(ctx context.Context, begin func(*segment)) (pause time.Duration, err error) {
	if over, err := s.over(ctx); over || err != nil {
		return 0, err
	}
	free, held, mine, err := s.look(ctx)
	if err != nil || len(free)+len(held)+mine == 0 {
		return 0, err
	}
	pause = lookHeld
	if len(free)+mine > 0 {
		pause = lookOpen
	}
	most := min(s.fleet.most, mine+atOnce)
	for _, i := range append(free, held...) { // a dead owner's segment can be claimed, too
		if mine == most {
			break
		}
		g, err := s.claim(ctx, i)
		if taken(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		pause = lookOpen
		if g != nil {
			mine++
			begin(g)
		}
	}
	return pause, nil
}

// look notes what others have done. It returns the open segments that nobody has, those
// that others have, and how many this worker reads.
func (s *Source) look(ctx context.Context) (free, held []int, mine int, err error) {
	var all []state.Shard
	err = s.fleet.call(ctx, func(ctx context.Context) (err error) {
		all, err = s.fleet.store.Shards(ctx, job.Stream(s.book.app))
		return err
	})
	if err != nil {
		return nil, nil, 0, err
	}
	rows := make(map[string]state.Shard)
	for _, sh := range all {
		rows[sh.ID] = sh
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, g := range s.segments {
		reads, done := g.state()
		sh := rows[s.book.segment(i)]
		n, _ := strconv.ParseInt(sh.Position.Sequence, 10, 64)
		switch {
		case reads:
			mine++
		case done:
		case sh.Position.Finished:
			s.segments[i] = s.elsewhere(i, mark{Done: true, sum: sum{Items: max(n, g.begun.Items)}})
		case sh.Owner == "":
			free = append(free, i)
		default:
			s.segments[i] = s.elsewhere(i, mark{sum: sum{Items: max(n, g.begun.Items)}})
			held = append(held, i)
		}
	}
	if mine > 0 { // all workers together take the units of one
		s.scanner.budget.SetRate(s.scanner.rate() * float64(mine) / float64(mine+len(held)))
	}
	return free, held, mine, nil
}

// elsewhere is a segment that this worker has not claimed.
func (s *Source) elsewhere(i int, m mark) *segment {
	return &segment{src: s, n: i, begun: m, read: m.sum, durable: m, stored: true}
}

// claim claims a segment and returns it where its last owner left it; nil if it is finished.
func (s *Source) claim(ctx context.Context, i int) (*segment, error) {
	l, p, err := s.fleet.claim(ctx, s.book.segment(i))
	if err != nil {
		return nil, err
	}
	m, err := s.continued(ctx, i, l, p)
	if err != nil || m == nil {
		s.fleet.release(context.WithoutCancel(ctx), l)
		return nil, err
	}
	g := s.elsewhere(i, *m)
	g.stored, g.lease = !m.Done, l // the end may not be stored in the row
	g.lost, g.lose = context.WithCancel(context.WithoutCancel(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segments[i] = g
	return g, nil
}

// continued returns where a claimed segment goes on; nil if it is finished.
func (s *Source) continued(ctx context.Context, i int, l state.Lease, p state.Position) (*mark, error) {
	over, err := s.over(ctx)
	if err != nil {
		return nil, err
	}
	if over { // the claim has made the row again
		if err := s.fleet.checkpoint(ctx, l, state.Position{Finished: true}); err != nil {
			return nil, err
		}
		s.fleet.release(ctx, l)
		return nil, s.fleet.forget(ctx, l.ShardID)
	}
	if p.Finished {
		return nil, nil
	}
	marks, err := s.book.marks(ctx)
	if err != nil {
		return nil, err
	}
	return &marks[i], nil
}

func (f *fleet) forget(ctx context.Context, ids ...string) error {
	return f.call(ctx, func(ctx context.Context) error { return f.store.Forget(ctx, job.Stream(f.book.app), ids...) })
}

// put stores how far a claimed segment is, and that it is finished before its last mark:
// only its owner may say so.
func (f *fleet) put(ctx context.Context, g *segment, m mark) error {
	name := fmt.Sprintf("%s/%020d", f.book.segment(g.n), g.lease.Epoch)
	p := state.Position{Sequence: strconv.FormatInt(m.Items, 10), Finished: m.Done}
	if m.Done {
		err := f.checkpoint(ctx, g.lease, p)
		if err == nil {
			err = f.book.put(ctx, name, m)
		}
		if err == nil {
			f.release(ctx, g.lease)
		}
		return err
	}
	// The count of items is never ahead of the mark: who goes on there counts from it.
	if err := f.book.put(ctx, name, m); err != nil {
		return err
	}
	return f.checkpoint(ctx, g.lease, p)
}

// leave releases the segments whose end is not stored.
func (f *fleet) leave(ctx context.Context, all []*segment) {
	for _, g := range all {
		if _, done := g.state(); g.lease.Owner != "" && !done {
			f.release(ctx, g.lease)
		}
	}
}

// finishTogether stores once that all is finished, and deletes the rows of the segments.
func (s *Source) finishTogether(ctx context.Context) error {
	if over, err := s.over(ctx); over || err != nil {
		return err
	}
	marks, err := s.book.marks(ctx)
	if err != nil {
		return err
	}
	var all sum
	var ids []string
	for i, g := range s.all() {
		m := marks[i]
		m.Items = max(m.Items, g.begun.Items) // its last mark may not be stored yet, or ever
		all.add(m.sum)
		ids = append(ids, s.book.segment(i))
	}
	if err := s.book.finish(ctx, all); errors.Is(err, errOther) {
		_, err = s.over(ctx)
		return err
	} else if err != nil {
		return err
	}
	_ = s.fleet.forget(ctx, ids...) // they are small
	return nil
}

// all returns the segments. Those of a fleet are replaced.
func (s *Source) all() []*segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.segments)
}

// segmentOf returns the number of the segment that a value is of.
func (b *book) segmentOf(name string) (i int, ok bool) {
	rest, ok := strings.CutPrefix(name, b.name+"/"+b.head.Generation+"/")
	if !ok {
		return 0, false
	}
	number, _, _ := strings.Cut(rest, "/")
	i, err := strconv.Atoi(number)
	return i, err == nil && i >= 0 && i < b.head.Segments
}
