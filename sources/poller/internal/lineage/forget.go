package lineage

import (
	"time"

	"github.com/sluicehq/sluice/state"
)

// keepRows is how long a shard is remembered after it was closed. A day
// later none of its records can be read.
const keepRows = 2 * Retention

// Plausible reports whether a complete listing, merged before, may be believed
// in what it leaves out: it shows all shards that are still to be read, and
// none as open that was shown closed.
func (f *Forest) Plausible(shards []Listed) bool {
	for _, n := range f.nodes {
		if n.missing > 0 && !n.settled() && n.phase != halted {
			return false
		}
	}
	return len(shards) > 0 && !f.reopens(shards)
}

// Outdated returns the stored shards that were closed long ago, are not listed
// any more, and have no child that is not settled to its end. A shard was
// closed when its children were made, which their ids tell; one that was
// stored unread, before the start at LATEST.
func (f *Forest) Outdated(stored []state.Shard, start state.Start, now time.Time) (ids []string) {
	closed := make(map[string]time.Time)
	child := func(id, parent string, over bool) {
		at := ShardCreated(id)
		if !over || at.IsZero() {
			at = now
		}
		if at.After(closed[parent]) {
			closed[parent] = at
		}
	}
	for _, n := range f.nodes {
		child(n.ID, n.Parent, n.settled())
	}
	for _, sh := range stored {
		child(sh.ID, sh.Parent, sh.Position.Finished)
	}
	for _, sh := range stored {
		at, ok := closed[sh.ID]
		if !ok && sh.Epoch == 0 && start.Position == latest {
			at, ok = start.At, true
		}
		if ok && sh.Position.Finished && f.nodes[sh.ID] == nil && at.Before(now.Add(-keepRows)) {
			ids = append(ids, sh.ID)
		}
	}
	return ids
}
