package poller

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehq/sluice/state"
)

// What is stored of shards that are over would pile up: a thousand that roll
// every four hours are two million in a year. It is of use only as long as a
// late listing may show such a shard again, which without it is read from its
// beginning, or as a child may ask whether its parent is settled. So it is
// forgotten long after both. Of a stream that was replaced and is settled all
// is kept, as of shards without children: nothing is added to that.
const (
	// keepRows is how long a shard is remembered after it was closed. A day
	// later none of its records can be read.
	keepRows = 2 * retention
	// absentFor is how long, beyond that, no listing may show it.
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
		delete(s.absent, l.id)
	}
	if !s.forest.plausible(f.shards) {
		return
	}
	was := s.absent
	s.absent = make(map[string]time.Time)
	for _, id := range s.forest.outdated(f.stored, s.start, f.date) {
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
		shown[sh.id] = true
	}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return shown[id] })
	if len(ids) == 0 || len(shown) == 0 {
		return
	}
	if err := s.p.store.forget(ctx, s.id, ids...); err != nil && ctx.Err() == nil {
		s.p.failed(Shard{Table: s.table, StreamARN: s.id.ARN}, "forget", err, transient, s.p.o.DiscoverEvery)
	}
}

// plausible reports whether a complete listing, merged before, may be believed
// in what it leaves out: it shows all shards that are still to be read, and
// none as open that was shown closed.
func (f *forest) plausible(shards []listed) bool {
	for _, n := range f.nodes {
		if n.missing > 0 && n.phase != done && n.phase != halted {
			return false
		}
	}
	return len(shards) > 0 && !f.reopens(shards)
}

// outdated returns the stored shards that were closed long ago, are not listed
// any more, and have no child that is not settled to its end. A shard was
// closed when its children were made, which their ids tell; one that was
// stored unread, before the start at LATEST.
func (f *forest) outdated(stored []state.Shard, start state.Start, now time.Time) (ids []string) {
	closed := make(map[string]time.Time)
	child := func(id, parent string, over bool) {
		at := shardCreated(id)
		if !over || at.IsZero() {
			at = now
		}
		if at.After(closed[parent]) {
			closed[parent] = at
		}
	}
	for _, n := range f.nodes {
		child(n.id, n.parent, n.phase == done)
	}
	for _, sh := range stored {
		child(sh.ID, sh.Parent, sh.Position.Finished)
	}
	for _, sh := range stored {
		at, ok := closed[sh.ID]
		if !ok && sh.Epoch == 0 && start.Position == Latest {
			at, ok = start.At, true
		}
		if ok && sh.Position.Finished && f.nodes[sh.ID] == nil && at.Before(now.Add(-keepRows)) {
			ids = append(ids, sh.ID)
		}
	}
	return ids
}
