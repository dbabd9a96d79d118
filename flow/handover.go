package flow

import (
	"maps"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
)

// A handover replaces the routes of a running process. The old flows close early:
// records that failed, or whose route fails for all, come again in flows of a new
// Group. Their failures count there: the budget of retries does not begin anew.

// handedFor is how long a Group remembers records that have not come again. Until then
// they may have gone to another process.
const handedFor = 15 * time.Minute

// awaitHanded is how long a route stays in an outage while no record waits for it,
// because those of the handover are still to come.
const awaitHanded = time.Minute

// handedKey identifies a record and one of its routes. A record of a backfill has no
// position: its item names it.
type handedKey struct {
	route, table, shard, sequence, event string
	item                                 uint64
}

func handedOf(t *task) handedKey {
	rec := t.e.rec
	return handedKey{t.failure.Route, rec.Table, rec.ShardID, string(rec.Sequence), rec.EventID, t.e.hash}
}

// handed is what a new flow takes over of a task.
type handed struct {
	failure sluice.Failure
	tries   int
	at      time.Time // when the record was first submitted
}

// HandOver prepares the end of all flows of g, before a Group of new routes inherits
// from it. Close then leaves records that failed, and records of routes that are paused or
// in an outage. Call it before Close, and do not open flows of g afterwards.
func (g *Group) HandOver() {
	g.handsOver.Store(true)
	for _, gt := range g.gates {
		gt.await(time.Now().Add(awaitHanded))
	}
	for _, f := range g.joined() {
		f.throttled() // Close may return
	}
}

// Inherit takes over from old, by the names of routes: what is known of each route and
// its items, its throttle, and the failures of records that wait. Call it after the
// flows of old have closed and before those of g open.
func (g *Group) Inherit(old *Group) {
	for _, gt := range g.gates {
		for _, before := range old.gates {
			if before.route.Name == gt.route.Name {
				gt.inherit(before)
			}
		}
	}
	old.mu.Lock()
	all := maps.Clone(old.handed)
	old.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handed, g.handedAt = all, time.Now()
}

// hand keeps a failed task for the next Group. The flow's mu is held.
func (g *Group) hand(t *task) {
	if !g.handsOver.Load() || t.state == done || t.failure.First == nil {
		return
	}
	k := handedOf(t)
	for _, text := range []*string{&k.table, &k.shard, &k.sequence, &k.event} {
		*text = strings.Clone(*text) // of a page's memory
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.handed == nil {
		g.handed = make(map[handedKey]handed)
	}
	g.handed[k] = handed{t.failure, t.tries, t.e.at}
}

// taken returns what an earlier Group knew of a record, once.
func (g *Group) taken(k handedKey) (handed, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h, ok := g.handed[k]
	delete(g.handed, k)
	return h, ok
}

// forgetHanded forgets records that did not come again.
func (g *Group) forgetHanded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.handed != nil && !g.handsOver.Load() && time.Since(g.handedAt) > handedFor {
		g.handed = nil
	}
}

// troubled reports whether a handover does not wait for t.
func (t *task) troubled() bool {
	return t.state == queued && !t.doomed && (t.failure.First != nil || t.gate != nil && (t.gate.paces.Load() || t.gate.paused.Load()))
}

func (g *gate) await(until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.awaits = until
}

// inherit takes over from the gate of the same route. No flow uses either.
func (g *gate) inherit(old *gate) {
	old.mu.Lock()
	defer old.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.throttle, g.pausedAt, g.stood, g.stops = old.throttle, old.pausedAt, old.stood, old.stops
	g.paused.Store(g.throttle.Paused)
	g.setLimits()
	g.filled = g.now()
	g.successes, g.fails, g.succeeded, g.succeededAt, g.err = old.successes, old.fails, old.succeeded, old.succeededAt, old.err
	g.streak, g.fresh, g.items, g.limiter = old.streak, old.fresh, old.items, old.limiter
	g.items.keep, g.items.failed = 2*g.maxBackoff, make(map[uint64]*failedItem, len(old.items.failed))
	for hash, it := range old.items.failed { // a late handler of an old flow may still fail
		kept := *it
		g.items.failed[hash] = &kept
	}
	g.outage = outage{on: old.outage.on, number: old.outage.number} // the new route may work: a probe starts at once
	if g.outage.on {
		g.outage.width = 1
	}
	g.ramps, g.binds, g.awaits = old.ramps, old.binds, time.Now().Add(awaitHanded)
	g.state, g.told, g.since, g.troubled, g.crowded = old.state, old.told, old.since, old.troubled, old.crowded
	g.healthy, g.healthyAt = old.healthy, old.healthyAt
	g.failures = old.failures
	g.judge(g.now())
}
