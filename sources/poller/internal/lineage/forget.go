package lineage

import (
	"time"

	"github.com/sluicehq/sluice/state"
)

// keepRows is the time for which the store keeps a closed shard. A day after its end
// the stream has none of its records.
const keepRows = 2 * Retention

// Plausible reports whether the absence of a shard from a merged full listing counts:
// the listing has all unfinished shards, and shows no closed shard as open.
func (f *Forest) Plausible(shards []Listed) bool {
	for _, n := range f.nodes {
		if n.missing > 0 && !n.settled() && n.phase != halted {
			return false
		}
	}
	return len(shards) > 0 && !f.reopens(shards)
}

// Outdated returns the stored shards that were closed long ago, are not listed any
// more, and whose children are all settled to their ends. The ids of the children
// tell when the shard was closed. A shard stored unread was closed before the start
// at LATEST.
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
