package poller

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehq/sluice/state"
)

// The rows of finished shards would accumulate: a thousand shards that roll over
// every four hours make two million rows a year. A row has two uses. If a late
// listing shows the shard again, the row keeps it from being read from its
// beginning. And a child may ask whether its parent is settled. So rows are
// deleted long after both. Shards without children, and settled streams that were
// replaced, keep their rows, because these do not grow.
const (
	// keepRows is how long the row of a closed shard is kept. Its records have
	// expired a day before the end.
	keepRows = 2 * retention
	// absentFor is the further time for which no listing may show the shard.
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

// forgetRows deletes the rows of shards from the store, except of listed ones. The
// next listing retries a failure.
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

// plausible reports whether the gaps in a full listing, merged before, can be
// trusted. The listing must show every unfinished shard, and no closed shard as
// open.
func (f *forest) plausible(shards []listed) bool {
	for _, n := range f.nodes {
		if n.missing > 0 && n.phase != done && n.phase != halted {
			return false
		}
	}
	return len(shards) > 0 && !f.reopens(shards)
}

// outdated returns the stored shards that were closed long ago, are no longer
// listed, and have no unfinished child. A shard was closed when its children were
// created, which their ids tell. A shard stored unread was closed before the start
// at LATEST.
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
