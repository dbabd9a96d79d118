package poller

import (
	"context"
	"slices"
	"time"
)

// The rows of finished shards would accumulate: a thousand shards that roll over
// every four hours make two million rows a year. A row has two uses. If a late
// listing shows the shard again, the row keeps it from being read from its
// beginning. And a child may ask whether its parent is settled. So rows are
// deleted long after both. Shards without children, and settled streams that were
// replaced, keep their rows, because these do not grow.
const (
	// absentFor is how long, beyond what Outdated keeps, no listing may show it.
	absentFor  = time.Hour
	forgetMost = 1000 // shards at a time
)

// aged lists shards whose rows are no longer needed. Only run's goroutine uses it.
type aged struct {
	absent map[string]time.Time // such shards, and since when no listing showed them
	forget []string             // to be deleted by the next listing, unless it shows them
}

// weigh updates the candidates from a full listing, which was merged before.
func (s *stream) weigh(f found) {
	s.forget = nil
	for _, l := range f.shards {
		delete(s.absent, l.ID)
	}
	if !f.read || !s.forest.Plausible(f.shards) {
		return
	}
	was := s.absent
	s.absent = make(map[string]time.Time)
	for _, id := range s.forest.Outdated(f.stored, s.start, f.date) {
		since, ok := was[id]
		if !ok {
			since = time.Now()
		}
		s.absent[id] = since
		if time.Since(since) >= absentFor && len(s.forget) < forgetMost {
			s.forget = append(s.forget, id)
		}
	}
}

// forgetRows deletes the rows of shards from the store, except of listed ones. A
// later listing retries a failure.
func (s *stream) forgetRows(ctx context.Context, ids []string, l listing) {
	shown := make(map[string]bool, len(l.shards))
	for _, sh := range l.shards {
		shown[sh.ID] = true
	}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return shown[id] })
	if len(ids) == 0 || len(shown) == 0 {
		return
	}
	if err := s.p.store.forget(ctx, s.id, ids...); err != nil && ctx.Err() == nil {
		s.p.failed(s.shard(""), "forget", err, transient, s.p.o.DiscoverEvery)
	}
}
