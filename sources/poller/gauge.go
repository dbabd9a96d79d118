package poller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/flow"
)

// gauge is what is known of a shard being read; for health and lag.
type gauge struct {
	shard Shard
	flow  *flow.Flow
	pos   *positions
	quota *quota

	mu         sync.Mutex
	polling    bool      // not waiting for the flow, not at its end
	lastGood   time.Time // poll
	err        error     // of the last poll
	kind       kind
	submitted  uint64
	settled    uint64
	progressAt time.Time // when the watermark last moved, or had nothing to wait for
	noRoomAt   time.Time // since when it waits for memory; zero: it does not
}

func newGauge(s Shard, f *flow.Flow, pos *positions, q *quota) *gauge {
	now := time.Now()
	return &gauge{shard: s, flow: f, pos: pos, quota: q, polling: true, lastGood: now, progressAt: now}
}

func (g *gauge) polled(err error, k kind) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err, g.kind = err, k
	if err == nil {
		g.lastGood = time.Now()
	}
}

// poll says whether the reader polls, or waits for somebody else.
func (g *gauge) poll(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.polling = on
	if on {
		g.lastGood = time.Now()
	}
}

// noRoom says whether the reader waits for memory.
func (g *gauge) noRoom(on bool) {
	g.poll(!on)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.noRoomAt = time.Time{}
	if on {
		g.noRoomAt = time.Now()
	}
}

func (g *gauge) submit(last uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.submitted == g.settled {
		g.progressAt = time.Now()
	}
	g.submitted = last
}

// observe looks at the watermark and returns the lag.
func (g *gauge) observe() time.Duration {
	settled := g.flow.Settled()
	g.pos.settle(settled)
	g.mu.Lock()
	if settled != g.settled || settled == g.submitted {
		g.settled, g.progressAt = settled, time.Now()
	}
	g.mu.Unlock()
	return g.lag()
}

// lag is the age of the oldest record not settled; of a shard that is settled
// as far as it was read, the time since everything in it had been read.
func (g *gauge) lag() time.Duration { return max(0, time.Since(g.pos.oldest())) }

// nearLoss is the share of its life in the stream that a record may wait before
// the poller is unready.
const nearLoss = retention * 8 / 10

// trouble returns why the shard makes the poller unready.
func (g *gauge) trouble(staleAfter, stallAfter time.Duration) (reasons []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	say := func(format string, args ...any) {
		reasons = append(reasons, fmt.Sprintf("table %s shard %s: ", g.shard.Table, g.shard.ID)+fmt.Sprintf(format, args...))
	}
	switch {
	case g.err != nil && g.kind == refused:
		say("%v on %s", g.err, g.shard.StreamARN)
	case g.polling && time.Since(g.lastGood) > staleAfter:
		say("no successful poll for %v (last error: %v): see that the service can be reached", time.Since(g.lastGood).Round(time.Second), g.err)
	case !g.noRoomAt.IsZero() && time.Since(g.noRoomAt) > stallAfter:
		say("has waited %v for memory that records of other shards keep (Options.MaxMemory): see which items are held", time.Since(g.noRoomAt).Round(time.Second))
	case g.submitted > g.settled && time.Since(g.progressAt) > stallAfter:
		say("the watermark has not moved for %v with %d records waiting: see which items are held, and why", time.Since(g.progressAt).Round(time.Second), g.submitted-g.settled)
	}
	if lag := g.lag(); lag >= nearLoss {
		say("the oldest record that is not settled is %v old, and the stream forgets it after %v: handle or park it before, or it is lost", lag.Round(time.Minute), retention)
	}
	return reasons
}

func (g *gauge) status() Status {
	settled := g.flow.Settled()
	pos := g.pos.settle(settled)
	g.mu.Lock()
	defer g.mu.Unlock()
	return Status{
		Shard: g.shard, Position: string(pos), Lag: g.lag(), LastPoll: g.lastGood, Err: g.err,
		Unsettled: max(g.submitted, settled) - settled, Pinned: g.quota.memory.pinned(),
	}
}

// gauges are those of the shards being read. The zero value is ready.
type gauges struct {
	mu  sync.Mutex
	set map[*gauge]struct{}
}

func (gs *gauges) add(g *gauge) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if gs.set == nil {
		gs.set = make(map[*gauge]struct{})
	}
	gs.set[g] = struct{}{}
}

func (gs *gauges) remove(g *gauge) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	delete(gs.set, g)
}

// all returns them ordered by table and shard.
func (gs *gauges) all() []*gauge {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return slices.SortedFunc(maps.Keys(gs.set), func(a, b *gauge) int {
		return cmp.Or(strings.Compare(a.shard.Table, b.shard.Table), strings.Compare(a.shard.ID, b.shard.ID))
	})
}
