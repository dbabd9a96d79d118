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
	"github.com/sluicehq/sluice/sources/poller/internal/lineage"
	"github.com/sluicehq/sluice/sources/poller/internal/positions"
	"github.com/sluicehq/sluice/sources/poller/internal/quota"
)

// gauge measures a shard that is due: listed, not finished, and not waiting for
// its parent. It exists even while no worker reads the shard. Otherwise an unread
// shard would look like a healthy one.
type gauge struct {
	shard Shard
	clock *clock // dates records

	mu    sync.Mutex
	flow  *flow.Flow     // nil: nobody reads it
	pos   *positions.Map // with flow
	quota *quota.Share   // with flow

	polling  bool      // not at the shard's end, and not waiting for the flow or for memory
	pausedAt time.Time // when polling stopped
	proven   time.Time // last good poll or its substitute, shifted by the time without polling
	lastGood time.Time // last good poll
	err      error     // of the last poll, or why the shard is not read
	kind     kind

	brokenAt time.Time // since when reading fails again and again despite good polls; zero: it does not
	brokeAt  time.Time // last such failure
	brokeOf  error

	settled    uint64
	progressAt time.Time // last time that the watermark moved or had nothing to wait for
	noRoomAt   time.Time // since when it waits for memory without a good poll; zero: it does not
}

func newGauge(s Shard, c *clock) *gauge {
	return &gauge{shard: s, clock: c, polling: true, proven: time.Now()}
}

// attach notes who reads the shard.
func (g *gauge) attach(f *flow.Flow, pos *positions.Map, q *quota.Share) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flow, g.pos, g.quota = f, pos, q
	g.settled, g.progressAt = 0, time.Now()
}

// detach notes that the shard is no longer read.
func (g *gauge) detach() {
	g.poll(true)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flow, g.pos, g.quota, g.noRoomAt = nil, nil, nil, time.Time{}
}

// unread notes why the shard is not read, if the last poll does not say it.
func (g *gauge) unread(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case held(err): // another living owner reads it
		g.proven, g.err = time.Now(), nil
	case err != nil:
		g.err, g.kind = err, classify(err)
	}
}

// broke notes that reading ended with an error. A good poll does not clear it: the
// failure may come after the poll.
func (g *gauge) broke(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if g.brokenAt.IsZero() {
		g.brokenAt = now
	}
	g.brokeAt, g.brokeOf = now, err
}

func (g *gauge) polled(err error, k kind) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err, g.kind = err, k
	if err == nil {
		g.lastGood = time.Now()
		g.proven = g.lastGood
		g.noRoomAt = time.Time{}
	}
}

// poll notes whether the reader polls or waits.
func (g *gauge) poll(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if on == g.polling {
		return
	}
	g.polling = on
	if on {
		g.proven = g.proven.Add(time.Since(g.pausedAt))
		return
	}
	g.pausedAt = time.Now()
	if g.pending() == 0 {
		g.progressAt = g.pausedAt
	}
}

// noRoom notes whether the reader waits for memory. A failed poll does not end the
// wait.
func (g *gauge) noRoom(on bool) {
	g.poll(!on)
	g.mu.Lock()
	defer g.mu.Unlock()
	if on && g.noRoomAt.IsZero() {
		g.noRoomAt = time.Now()
	}
}

// pending is the number of records taken and not settled. mu is held.
func (g *gauge) pending() uint64 {
	if g.flow == nil {
		return 0
	}
	g.settle()
	return g.pos.Added() - g.settled
}

// settle reads the watermark. mu is held.
func (g *gauge) settle() {
	settled := g.flow.Settled()
	g.pos.Settle(settled)
	if settled != g.settled {
		g.settled, g.progressAt = settled, time.Now()
		g.brokenAt = time.Time{}
	}
}

// observe reads the watermark and returns the lag; 0 if the shard is not read.
func (g *gauge) observe() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flow == nil {
		return 0
	}
	if g.pending() == 0 && g.polling {
		g.progressAt = time.Now()
	}
	return g.lag()
}

// lag is the age of the oldest record not settled; of a shard that is settled
// as far as it was read, the time since everything in it had been read. mu is
// held.
func (g *gauge) lag() time.Duration { return max(0, g.clock.now().Sub(g.pos.Oldest())) }

// nearLoss is the share of its life in the stream that a record may wait before
// the poller is unready.
const nearLoss = lineage.Retention * 8 / 10

// trouble returns the missing proofs of the shard: that it was polled within
// staleAfter, or that its wait made progress within stallAfter.
func (g *gauge) trouble(staleAfter, stallAfter time.Duration) (reasons []string) {
	lag := g.observe()
	full, fullAt, paused := "", time.Time{}, false
	if f := g.reads(); f != nil {
		full, fullAt = f.Full()
		paused = f.Paused() != ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	say := func(format string, args ...any) {
		reasons = append(reasons, fmt.Sprintf("table %s shard %s: ", g.shard.Table, g.shard.ID)+fmt.Sprintf(format, args...))
	}
	why := ""
	if g.err != nil {
		why = fmt.Sprintf(" (last error: %v)", brief(g.err))
	}
	if time.Since(g.brokeAt) > max(staleAfter, 2*goneRetry) {
		g.brokenAt = time.Time{}
	}
	switch waits := time.Since(g.progressAt); {
	case g.err != nil && g.kind == refused:
		say("%v on %s", g.err, g.shard.StreamARN)
	case g.polling && time.Since(g.proven) > staleAfter:
		say("no successful poll since %s%s: see that the service can be reached, and that it is the one which lists the shard", g.proven.Format(time.RFC3339), why)
	case !g.brokenAt.IsZero() && time.Since(g.brokenAt) > staleAfter:
		say("reading it fails again and again since %s, and nothing goes on: %v", g.brokenAt.Format(time.RFC3339), brief(g.brokeOf))
	case !g.noRoomAt.IsZero() && time.Since(g.noRoomAt) > stallAfter:
		say("has waited %v for memory that records of other shards keep (Options.MaxMemory): see which items are held%s", time.Since(g.noRoomAt).Round(time.Second), why)
	case paused && g.err == nil: // an operator wants it so
	case full != "" && max(waits, time.Since(fullAt)) > stallAfter: // even if the watermark moves now and then
		say("the watermark has not moved for %v with %d records waiting, and nothing was read for %v, because %s: see which items are held, and why; mend that, park them with sluice park, or raise the limit",
			waits.Round(time.Second), g.pending(), time.Since(fullAt).Round(time.Second), full)
	case g.flow == nil || waits <= stallAfter:
	case g.pending() > 0:
		say("the watermark has not moved for %v with %d records waiting: see which items are held, and why", waits.Round(time.Second), g.pending())
	case !g.polling && g.noRoomAt.IsZero():
		say("nothing has gone on for %v, and nothing is held: a page waits to be handed over, or a position to be stored; see what else is not ready", waits.Round(time.Second))
	}
	if lag >= nearLoss {
		say("the oldest record that is not settled is %v old, and the stream forgets it after %v: handle or park it before, or it is lost", lag.Round(time.Minute), lineage.Retention)
	}
	return reasons
}

// status returns the shard's Status; ok is false if the shard is not read.
func (g *gauge) status() (s Status, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flow == nil {
		return Status{}, false
	}
	pending := g.pending()
	return Status{
		Shard: g.shard, Position: string(g.pos.Settle(g.settled)), Lag: g.lag(), LastPoll: g.lastGood, Err: g.err,
		Unsettled: pending, Pinned: g.quota.Pinned(),
	}, true
}

// reads returns the shard's flow; nil if the shard is not read.
func (g *gauge) reads() *flow.Flow {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.flow
}

// gauges are the gauges of the shards that are due.
type gauges struct {
	mu  sync.Mutex
	set map[*gauge]struct{}
}

func (gs *gauges) add(g *gauge) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
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
