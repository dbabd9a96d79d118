package dynamostate

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

// A shard that is released for one owner is claimed by that one. Others wait, but not
// for ever: a reservation decides who comes first, and nothing else.

const (
	// awaitFor is how long a claim waits for the release of an offered shard.
	awaitFor = 4 * time.Second
	// lookOffered is between two looks at an offered shard, and as much more for each
	// lookAtOnce of them that are released before it.
	lookOffered = 50 * time.Millisecond
	lookAtOnce  = 2
	lookAtMost  = 500 * time.Millisecond // between two looks at one of them
	// reservedFor is how long a released shard waits for the owner that it is for.
	reservedFor = 10 * time.Second
	// shareFor is how long a free shard waits for owners that have fewer, after its
	// owner has ended.
	shareFor = 500 * time.Millisecond
)

// await waits until a shard that was offered to owner is released.
func (s *Store) await(ctx context.Context, k rows.Key, owner string) error {
	for began := time.Now(); time.Since(began) < awaitFor; {
		_, place := s.members.offers(owner, k)
		if place < 0 {
			return nil
		}
		row, err := s.rows.Get(ctx, k)
		if err != nil {
			return err
		}
		if sh, err := shardOf(row); err != nil || sh.Owner == "" {
			s.noteHeld(k, heldShard{}, "")
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(lookOffered*time.Duration(1+place/lookAtOnce), lookAtMost)):
		}
	}
	return nil
}

// reservation is a released shard that is for another owner, as this Store saw it first.
type reservation struct {
	epoch uint64
	since time.Time
}

// mayTake returns ErrHeld if a shard that nobody has is for another owner than that one.
func (s *Store) mayTake(ctx context.Context, app string, k rows.Key, sh shard, owner string) error {
	if sh.next == owner {
		return nil
	}
	if sh.next != "" && s.reserve(k, sh.Epoch) < reservedFor {
		living, err := s.members.living(ctx, app, sh.next, false)
		if err != nil {
			return err
		}
		if living {
			return fmt.Errorf("%w: shard %s is released for %s", state.ErrHeld, sh.ID, sh.next)
		}
	}
	if s.members.hasShare(app, owner) {
		return fmt.Errorf("%w: shard %s is left to workers that have fewer", state.ErrHeld, sh.ID)
	}
	return nil
}

// reserve returns for how long this Store has seen a shard reserved.
func (s *Store) reserve(k rows.Key, epoch uint64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.reserved[k]
	if !ok || r.epoch != epoch {
		r = reservation{epoch, time.Now()}
		s.reserved[k] = r
	}
	return time.Since(r.since)
}

// hasShare reports whether an own member has its share of the shards of an owner that
// ended just now.
func (m *members) hasShare(app, owner string) bool {
	o := m.watch(app)
	o.mu.Lock()
	share, left := o.share, o.left
	o.mu.Unlock()
	return time.Since(left) < shareFor && m.shards(app, owner) >= share
}
