package dynamostate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

// A record can end the process that reads it. Its shard then goes from worker to worker,
// and ends one after another. So the deaths of owners that had no progress since their
// claim are counted. Other shards of the same owners are counted with it. So a suspect
// is claimed alone: only the guilty one ends its owner again.

const (
	// deadlyAfter is how many owners must have died in a row.
	deadlyAfter = 3
	// deadlyWithin is how many heartbeats after its claim an owner must have died.
	deadlyWithin = 60
	// deadlyWait and deadlyRest are how long a suspect waits, and a shard that ended
	// its owner alone.
	deadlyWait = 30 * time.Second
	deadlyRest = 10 * time.Minute
	// probation is how long an owner claims no other suspect, and must live.
	probation = 5 * time.Second
)

// takenOver counts the death of a shard's owner. It returns an error while the shard
// waits.
func (s *Store) takenOver(app string, k rows.Key, sh shard, owner string) (shard, error) {
	if lived := s.members.beats(app, sh.Owner) + 1 - sh.beat; sh.beat == 0 || lived > deadlyWithin {
		sh.deaths = 0
		return sh, nil
	}
	sh.deaths++
	if sh.deaths < deadlyAfter {
		return sh, nil
	}
	wait := deadlyWait
	if sh.deaths > deadlyAfter {
		wait = deadlyRest
	}
	if seen := s.reserve(k, sh.Epoch); seen < wait {
		return sh, fmt.Errorf("%w: %d workers in a row ended soon after they began shard %s after record %v: see what follows that record; another worker tries in %v",
			state.ErrDeadly, sh.deaths, sh.ID, sh.Position, (wait - seen).Round(time.Second))
	}
	if !s.tries(k, owner) {
		return sh, fmt.Errorf("%w: shard %s waits until another suspect has proven harmless", state.ErrHeld, sh.ID)
	}
	return sh, nil
}

// tries reports whether owner may claim a suspect, and notes it until tried: claims of
// other shards run beside this one.
func (s *Store) tries(k rows.Key, owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspect != (rows.Key{}) && s.suspect != k {
		return false
	}
	for _, h := range s.leases {
		if h.Owner == owner && h.deaths >= deadlyAfter {
			return false
		}
	}
	s.suspect = k
	return true
}

// tried notes the end of a claim, after its lease.
func (s *Store) tried(k rows.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspect == k {
		s.suspect = rows.Key{}
	}
}

// pardon clears the suspects that owner has begun and survived.
func (s *Store) pardon(ctx context.Context, owner string) error {
	for _, h := range s.survived(owner) {
		err := s.under(ctx, h.Lease, func(sh shard) (shard, error) {
			sh.deaths, sh.beat = 0, 0
			return sh, nil
		})
		k := shardKey(h.Stream, h.ShardID)
		if errors.Is(err, state.ErrLeaseLost) {
			s.drops(k, h.Lease)
			continue
		}
		if err != nil {
			return err
		}
		s.mu.Lock()
		if now, ok := s.leases[k]; ok && now.Lease == h.Lease {
			now.deaths = 0
			s.leases[k] = now
		}
		s.mu.Unlock()
	}
	return nil
}

func (s *Store) survived(owner string) (all []heldLease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.leases {
		if h.Owner == owner && h.deaths >= deadlyAfter && time.Since(h.since) >= probation {
			all = append(all, h)
		}
	}
	return all
}

// beats returns the heartbeats of another owner, as this Store saw them last.
func (m *members) beats(app, owner string) uint64 {
	o := m.watch(app)
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.seen[owner]; s != nil {
		return s.stored.Beats
	}
	return 0
}

// ownBeats returns the heartbeats of an own member.
func (m *members) ownBeats(app, owner string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o := m.own[memberKey(app, owner)]; o != nil {
		return o.beats.Load()
	}
	return 0
}
