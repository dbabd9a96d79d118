package flow

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/quorum"
)

// gate decides when a call of one route starts. It applies the limits of the
// route's options, the operator's throttle, the learned limit, and the probes of an
// outage. It wakes the flows of waiting records in turn.
//
// While nothing fails and nothing is limited, no call takes its lock.
type gate struct {
	route      *sluice.Route
	attempts   int
	poison     time.Duration // Route.PoisonAfter
	backoff    time.Duration
	maxBackoff time.Duration
	limited    bool         // by the route's options or the throttle; written under mu
	calm       atomic.Bool  // no limit, and no recent failure: calls are not counted; written under mu
	paces      atomic.Bool  // an outage, or the ramp after it, paces all calls; written under mu
	limit      atomic.Int32 // learned limit of calls at a time; 0: none; written under mu
	paused     atomic.Bool  // throttle.Paused; written under mu

	mu      sync.Mutex // taken after a flow's mu, never before
	running int        // counted calls
	inSinks int        // of running: calls that wait in a sink
	firsts  int        // of running: first calls of a record
	tokens  float64
	filled  time.Time // time of the last update of tokens

	throttle    Throttle      // written under Group.throttling, too
	pausedAt    time.Time     // start of the pause; written with throttle
	stood       time.Duration // length of the pauses before
	stops       []stop        // the latest of them
	concurrency int           // calls at a time by options and throttle; 0: no limit
	rate, burst float64       // calls a second, the same

	queues []*queue  // of waiting flows, in the order of waking
	lostAt time.Time // when one extra call may start, because the last may never return
	timer  *time.Timer

	waiting     int // tasks of all flows
	successes   uint64
	fails       uint64 // plain ones
	succeeded   uint64 // fails as the latest call began that has succeeded
	succeededAt time.Time
	err         error  // the last failure
	streak      streak // of calls
	fresh       streak // of counted first calls that began after the last success
	outage      outage
	ramps       bool      // after an outage
	binds       time.Time // last time that the limit of a ramp made a call wait
	limiter     limiter
	items       items

	state     State
	told      State // last logged state
	since     time.Time
	troubled  time.Time     // last time that state was not Works
	crowded   time.Time     // last time that too many items failed
	healthy   time.Duration // time in healthy states, up to healthyAt
	healthyAt time.Time

	oldest, lookedAt time.Time // see Group.oldest; under Group.mu
	awaits           time.Time // until when waiting records of a handover may come; zero: none

	failures teller
	logs     sync.Mutex // keeps log lines in order; taken before mu
}

// call is a counted call. It gives back at its end the permits that it holds.
type call struct {
	self  quorum.Watcher // the call itself, passed on to learn when it waits in a sink
	gate  *gate
	flow  *Flow
	cuts  int    // limiter.cuts at the start
	seen  uint64 // successes at the start
	after uint64 // fails at the start
	first bool   // first call of its record
	probe int    // outage.number; 0: not a probe

	waited bool // in a sink, at some time. gate.mu guards the following fields
	inSink bool
	over   bool

	retry   *queue    // queue of a retried record; nil: not a retry. Under flow.mu
	retryAt time.Time // start of the retry
	turn    bool      // it takes a retry slot of the flow; under flow.mu
}

func newGate(r *sluice.Route) *gate {
	g := &gate{
		route:     r,
		attempts:  cmp.Or(max(r.Attempts, 0), defaultAttempts),
		poison:    cmp.Or(max(r.PoisonAfter, 0), defaultPoisonAfter),
		backoff:   cmp.Or(max(r.Backoff, 0), defaultBackoff),
		tokens:    float64(max(r.Burst, 1)),
		filled:    time.Now(),
		since:     time.Now(),
		healthyAt: time.Now(),
	}
	g.setLimits()
	g.maxBackoff = cmp.Or(max(r.MaxBackoff, 0), max(defaultMaxBackoff, g.backoff))
	g.items.keep = 2 * g.maxBackoff
	g.calm.Store(!g.limited)
	return g
}

// try lets a call through at once, unless others wait. The call is nil if it is
// not counted.
func (g *gate) try(f *Flow) (c *call, ok bool) {
	if g.calm.Load() {
		return nil, true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if len(g.queues) > 0 || !g.open(now) {
		return nil, false
	}
	return g.begin(f, true, now), true
}

// take lets a call of q's flow through, or registers the flow for waking. first:
// the record was never tried. The flow's mu is held.
func (g *gate) take(q *queue, first bool, now time.Time) (c *call, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now = g.at(now)
	if !g.open(now) {
		q.asked = true
		g.queues = append(g.queues, q)
		g.arm(now)
		return nil, false
	}
	return g.begin(q.flow, first, now), true
}

// open reports whether a call may start now.
func (g *gate) open(now time.Time) bool {
	at, ok := g.opens(now)
	return ok && !at.After(now)
}

// opens returns when a call may start even if no running call returns. ok is false
// if a running call must return first, or a pause must end.
func (g *gate) opens(now time.Time) (at time.Time, ok bool) {
	if g.throttle.Paused || g.concurrency > 0 && g.running >= g.concurrency {
		return now, false
	}
	at = now
	if g.rate > 0 {
		at = g.nextToken(now)
	}
	full := false
	if o, l := &g.outage, &g.limiter; o.on {
		at, full = later(at, o.probeAt), o.probes >= o.width
	} else if l.limit > 0 {
		at, full = later(at, l.pauseUntil), g.load() >= int(l.limit)
	}
	if full {
		at = later(at, g.lostAt)
	}
	return at, true
}

// load is the number of calls that the learned limit counts. Calls that wait in a
// sink do not count, because the sink limits its requests, except after an outage.
func (g *gate) load() int {
	if g.ramps {
		return g.running
	}
	return g.running - g.inSinks
}

// wanted reports whether more calls wait than the learned limit allows.
func (g *gate) wanted() bool {
	return len(g.queues) > 0 && !g.throttle.Paused && (g.rate == 0 || g.tokens >= 1) && (g.concurrency == 0 || g.concurrency > int(g.limiter.limit))
}

func (g *gate) begin(f *Flow, first bool, now time.Time) *call {
	c := &call{gate: g, flow: f, cuts: g.limiter.cuts, seen: g.successes, after: g.fails, first: first}
	c.self = c
	g.running++
	if first {
		g.firsts++
	}
	if g.rate > 0 {
		g.tokens--
	}
	g.lostAt = now.Add(max(g.maxBackoff, g.route.Timeout))
	if o := &g.outage; o.on {
		c.probe = o.number
		o.probes++
	}
	return c
}

// Parked and Unparked report that a counted call starts or ends waiting in a sink.
func (c *call) Parked() {
	g := c.gate
	g.mu.Lock()
	if !c.over && !c.inSink {
		c.inSink, c.waited = true, true
		g.inSinks++
	}
	g.mu.Unlock()
	c.flow.retrySleeps(c, -1)
	g.pump()
}

// Unparked: see Parked.
func (c *call) Unparked() {
	g := c.gate
	g.mu.Lock()
	if c.inSink {
		c.inSink = false
		g.inSinks--
	}
	g.mu.Unlock()
	c.flow.retrySleeps(c, 1)
}

// release gives back the permits of c.
func (g *gate) release(c *call) {
	if c == nil || c.over {
		return
	}
	c.over = true
	g.running--
	if c.first {
		g.firsts--
	}
	if c.inSink {
		c.inSink = false
		g.inSinks--
	}
	if c.probe == g.outage.number && g.outage.on {
		g.outage.probes--
	}
}

// unused gives back the permits of a call that was not made.
func (g *gate) unused(c *call) {
	g.mu.Lock()
	g.release(c)
	if g.rate > 0 {
		g.tokens++
	}
	g.mu.Unlock()
	g.pump()
}

// ended notes the result of a call for an item; c is nil for a call that was not
// counted. It returns the history that decide needs. moved: the state of the route
// must be logged.
func (g *gate) ended(c *call, hash uint64, k kind, err error) (h history, moved bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	wall := time.Now()
	now := g.at(wall)
	g.items.turn(now)
	began, load := -1, g.load()
	if c != nil && (!c.waited || g.ramps) {
		began = c.cuts
	}
	first := c != nil && c.first
	tried := began // counts in a trial of a lower limit
	if !first {    // a lower limit leaves fewer retries, which fail in a partial outage: every cut would seem to help
		tried = -1
	}
	probe := c != nil && c.probe == g.outage.number && g.outage.on
	g.release(c)
	var it *failedItem
	switch k {
	case succeeded:
		g.successes++
		if c != nil { // else it began before the route failed
			g.succeeded = max(g.succeeded, c.after)
		}
		g.succeededAt = wall
		g.streak, g.fresh = streak{}, streak{}
		g.items.succeed(hash)
		if g.outage.on {
			g.limiter.restart(g.outage.width)
			g.outage.on, g.ramps, g.binds = false, true, now
		} else {
			g.limiter.succeeded(tried, load, g.wanted(), now)
		}
	case skipped, permanent:
		g.items.giveUp(hash, false)
		if probe { // the next probe may start at once
			g.outage.width++
			g.outage.probeAt = now
		} else {
			g.limiter.grow(load, g.wanted(), now)
		}
	case failed, overloaded:
		g.calm.Store(false)
		g.err = err
		g.streak.add(hash, now)
		news := first && c.seen == g.successes
		if news {
			g.fresh.add(hash, now)
		}
		if k == failed {
			g.fails++
			it = g.items.fail(hash, g.state.Healthy(), g.healthyTime(now), g.successes, g.fails, now)
			if it != nil && it.clock >= g.poison && len(g.items.failed) > g.items.tolerated(now) {
				g.crowded = now // too many items fail to tell whether this one is poison
			}
			g.limiter.failed(tried, load, now)
		} else {
			g.limiter.refused(began, load, g.backoff, now)
		}
		switch {
		case probe:
			g.pace(now)
		case !g.outage.on && ((news || g.firsts == 0) && g.fresh.lasts(outageAfter, now) || g.streak.lasts(g.quiet(), now)):
			g.outage = outage{on: true, number: g.outage.number + 1}
			g.ramps = false
			g.pace(now)
		}
	}
	moved = g.moves(now)
	h = history{state: g.state, poison: g.attempts, poisonAfter: g.poison, backoff: g.backoff, maxBackoff: g.maxBackoff}
	if it != nil {
		h.clock, h.attempts, h.parked, h.vouched = it.clock, it.attempts, it.parked, g.succeeded >= it.began
		h.successes = g.successes - it.first
		h.failed, h.tolerated = len(g.items.failed), g.items.tolerated(now)
	}
	return h, moved
}

// wait counts one more waiting task.
func (g *gate) wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting++
	g.calm.Store(false)
}

// done ends the task of an item. giveUp: it did not succeed. poison: it was parked
// as poison. moved: the state of the route must be logged.
func (g *gate) done(hash uint64, giveUp, poison bool) (moved bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting--
	if giveUp {
		g.items.giveUp(hash, poison)
	}
	return g.moves(g.now())
}

// forsake notes that no flow retries the item.
func (g *gate) forsake(hash uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.items.giveUp(hash, false)
}

// parked counts a record that was parked.
func (g *gate) parked() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.items.turn(g.now())
	g.items.parks[g.items.minute%lookBackMinutes]++
}

// pump wakes flows in turn while a call may start. The caller holds no lock.
func (g *gate) pump() {
	for {
		g.mu.Lock()
		now := g.now()
		if len(g.queues) == 0 || !g.open(now) {
			g.arm(now)
			g.mu.Unlock()
			return
		}
		q := g.queues[0]
		g.queues = slices.Delete(g.queues, 0, 1)
		g.mu.Unlock()
		q.flow.offer(q)
	}
}

// forget unregisters q's flow.
func (g *gate) forget(q *queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.queues, q); i >= 0 {
		g.queues = slices.Delete(g.queues, i, i+1)
	}
}

// arm sets the timer for the time at which a call may start. A call that waits for
// another call to return needs no timer. mu is held.
func (g *gate) arm(now time.Time) {
	at, ok := g.opens(now)
	switch {
	case len(g.queues) == 0 || !ok:
		if g.timer != nil {
			g.timer.Stop()
		}
	case g.timer == nil:
		g.timer = time.AfterFunc(at.Sub(now), g.pump)
	default:
		g.timer.Reset(at.Sub(now))
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// tellEvery is the least time between two log lines about the same failure.
const tellEvery = time.Second

// teller limits the log lines about one failure.
type teller struct {
	told   time.Time // time of the last log line
	untold int       // unlogged failures since then
}

// tell reports whether to log a failure at now, and the number of unlogged
// failures before it.
func (t *teller) tell(now time.Time) (untold int, ok bool) {
	if now.Sub(t.told) < tellEvery {
		t.untold++
		return 0, false
	}
	untold, t.untold, t.told = t.untold, 0, now
	return untold, true
}

// tell is teller.tell for failures of the route.
func (g *gate) tell(now time.Time) (untold int, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failures.tell(now)
}
