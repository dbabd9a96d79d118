package poller

import (
	"context"
	"slices"
	"time"
)

// What is stored of shards that are over would pile up: a thousand that roll
// every four hours are two million in a year. It is of use only as long as a
// late listing may show such a shard again, which without it is read from its
// beginning, or as a child may ask whether its parent is settled. So it is
// forgotten long after both. Of a stream that was replaced and is settled all
// is kept, as of shards without children: nothing is added to that.
const (
	// absentFor is how long, beyond what Outdated keeps, no listing may show it.
	absentFor  = time.Hour
	forgetMost = 1000 // shards at a time
)

// aged is which shards need not be remembered. It is used by run's goroutine.
type aged struct {
	absent map[string]time.Time // such shards, and since when no listing showed them
	forget []string             // to be forgotten by the next listing, unless it shows them
}

// weigh notes what a listing of all shards, merged before, says about them.
func (s *stream) weigh(f found) {
	s.forget = nil
	for _, l := range f.shards {
		delete(s.absent, l.ID)
	}
	if !s.forest.Plausible(f.shards) {
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

// forgetRows deletes from the store what is stored of shards, but of those
// that are listed. What fails is tried again with the next listing.
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
		s.p.failed(Shard{Table: s.table, StreamARN: s.id.ARN}, "forget", err, transient, s.p.o.DiscoverEvery)
	}
}
