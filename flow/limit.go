package flow

import (
	"math"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
)

const (
	defaultAttempts   = 8
	defaultBackoff    = 100 * time.Millisecond
	defaultMaxBackoff = 30 * time.Second
)

// Group holds what flows of one process share about their routes: breakers,
// concurrency and rate limits. It is safe for concurrent use.
type Group struct{ gates []*gate }

// NewGroup returns a Group for the routes of m.
func NewGroup(m sluice.Matcher) *Group {
	routes := m.Routes()
	g := &Group{gates: make([]*gate, len(routes))}
	for i, r := range routes {
		g.gates[i] = newGate(r)
	}
	return g
}

// gate returns the gate of r, or nil when r is not one of the Matcher's Routes.
func (g *Group) gate(r *sluice.Route) *gate {
	if r.Index < 0 || r.Index >= len(g.gates) || g.gates[r.Index].route != r {
		return nil
	}
	return g.gates[r.Index]
}

// gate decides when a call of one route starts: its concurrency and rate
// limits, and one probe at a time while its breaker is open. Who has to wait
// waits in a queue, first in, first out, without a worker.
type gate struct {
	route      *sluice.Route
	attempts   int
	backoff    time.Duration
	maxBackoff time.Duration
	limited    bool // there is something to give back after a call
	breaker    breaker

	mu          sync.Mutex // taken after a flow's mu, never before
	running     int
	tokens      float64
	burst       float64
	filled      time.Time // when tokens was right
	first, last *task     // the queue, by ticket
	tickets     uint64
	timer       *time.Timer

	failures teller
}

// permit is what a call was let through with and gives back at its end.
type permit struct {
	counted bool   // in running
	probe   uint64 // number of the probe; 0 is none
}

func newGate(r *sluice.Route) *gate {
	g := &gate{
		route:      r,
		attempts:   r.Attempts,
		backoff:    r.Backoff,
		maxBackoff: r.MaxBackoff,
		burst:      float64(max(r.Burst, 1)),
		limited:    r.Concurrency > 0 || r.Rate > 0,
		filled:     time.Now(),
	}
	if g.attempts <= 0 {
		g.attempts = defaultAttempts
	}
	if g.backoff <= 0 {
		g.backoff = defaultBackoff
	}
	if g.maxBackoff <= 0 {
		g.maxBackoff = defaultMaxBackoff
	}
	g.tokens = g.burst
	return g
}

// try lets a call through at once unless somebody waits already.
func (g *gate) try() (permit, bool) {
	if !g.limited && !g.breaker.open.Load() {
		return permit{}, true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.first != nil {
		return permit{}, false
	}
	return g.permit(time.Now())
}

// admit lets t through at once or puts it into the queue. It is called with
// the mu of t's flow held.
func (g *gate) admit(t *task) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if t.ticket == 0 {
		g.tickets++
		t.ticket = g.tickets
	}
	if g.first == nil || t.ticket < g.first.ticket {
		var ok bool
		if t.permit, ok = g.permit(now); ok {
			t.ticket = 0
			return true
		}
	}
	g.insert(t)
	g.arm(now)
	return false
}

// insert queues t by its ticket: one that was let through when its flow had
// no slot has its old place.
func (g *gate) insert(t *task) {
	before := g.last
	for before != nil && before.ticket > t.ticket {
		before = before.before
	}
	t.queued, t.before = true, before
	if before == nil {
		t.behind, g.first = g.first, t
	} else {
		t.behind, before.behind = before.behind, t
	}
	if t.behind == nil {
		g.last = t
	} else {
		t.behind.before = t
	}
}

// withdraw takes t out of the queue if it is there.
func (g *gate) withdraw(t *task) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove(t)
	g.arm(time.Now())
}

func (g *gate) remove(t *task) {
	if !t.queued {
		return
	}
	if t.before != nil {
		t.before.behind = t.behind
	} else {
		g.first = t.behind
	}
	if t.behind != nil {
		t.behind.before = t.before
	} else {
		g.last = t.before
	}
	t.queued, t.before, t.behind = false, nil, nil
}

// permit takes what a call needs, if it is there.
func (g *gate) permit(now time.Time) (permit, bool) {
	open := g.breaker.open.Load()
	if open && now.Before(g.breaker.probeAt) {
		return permit{}, false
	}
	r := g.route
	if r.Concurrency > 0 && g.running >= r.Concurrency {
		return permit{}, false
	}
	if r.Rate > 0 {
		g.fill(now)
		if g.tokens < 1 {
			return permit{}, false
		}
		g.tokens--
	}
	p := permit{counted: g.limited}
	if g.limited {
		g.running++
	}
	if open {
		p.probe = g.breaker.startProbe(now, max(g.maxBackoff, r.Timeout))
	}
	return p, true
}

// fill adds the tokens that have come since the last time. What a float
// rounds off must not cost a wait.
func (g *gate) fill(now time.Time) {
	const nearly = 1e-6
	g.tokens = min(g.burst, g.tokens+now.Sub(g.filled).Seconds()*g.route.Rate)
	if g.tokens > 1-nearly && g.tokens < 1 {
		g.tokens = 1
	}
	g.filled = now
}

// release ends a call that was let through with p and lets others through.
func (g *gate) release(p permit, how outcome) {
	if !p.counted && p.probe == 0 {
		return
	}
	g.mu.Lock()
	if p.counted {
		g.running--
	}
	if p.probe != 0 {
		g.breaker.endProbe(p.probe, how, time.Now(), g.backoff, g.maxBackoff)
	}
	g.mu.Unlock()
	g.pump()
}

// unused gives back a permit with which nothing was called.
func (g *gate) unused(p permit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.counted {
		g.running--
		g.tokens = min(g.burst, g.tokens+1)
	}
	if p.probe != 0 {
		g.breaker.endProbe(p.probe, neutral, time.Now(), g.backoff, g.maxBackoff)
	}
}

// pump lets those through who are first in the queue. A permit goes only to
// a record that its flow can run now: one that waited for a slot there would
// keep it from the other flows. It is called without any lock.
func (g *gate) pump() {
	for {
		g.mu.Lock()
		now := time.Now()
		t := g.first
		if t == nil {
			g.arm(now)
			g.mu.Unlock()
			return
		}
		p, ok := g.permit(now)
		if !ok {
			g.arm(now)
			g.mu.Unlock()
			return
		}
		g.remove(t)
		g.mu.Unlock()
		if !t.flow.startPermitted(t, p) {
			g.unused(p)
		}
	}
}

// arm sets the timer for the first time at which the queue may move without a
// call coming back.
func (g *gate) arm(now time.Time) {
	if g.first == nil {
		if g.timer != nil {
			g.timer.Stop()
		}
		return
	}
	var wait time.Duration
	switch open := g.breaker.open.Load(); {
	case open && now.Before(g.breaker.probeAt):
		wait = g.breaker.probeAt.Sub(now)
	case g.route.Concurrency > 0 && g.running >= g.route.Concurrency && !open:
		return // a call that comes back pumps
	case g.route.Concurrency > 0 && g.running >= g.route.Concurrency:
		wait = g.maxBackoff // to look who is too old
	case g.route.Rate > 0:
		g.fill(now)
		seconds := min(max(0, 1-g.tokens)/g.route.Rate, 3600)
		wait = time.Duration(math.Ceil(seconds * float64(time.Second)))
	}
	if g.timer == nil {
		g.timer = time.AfterFunc(wait, g.tick)
	} else {
		g.timer.Reset(wait)
	}
}

func (g *gate) tick() {
	g.expire()
	g.pump()
}

// expire sends away those who have become too old while the route fails for all.
func (g *gate) expire() {
	g.mu.Lock()
	if !g.breaker.open.Load() {
		g.mu.Unlock()
		return
	}
	now, cause := time.Now(), g.breaker.err
	var old []*task
	for t := g.first; t != nil; {
		behind := t.behind
		if t.tooOld(now) {
			g.remove(t)
			old = append(old, t)
		}
		t = behind
	}
	g.mu.Unlock()
	for _, t := range old {
		t.flow.expire(t, cause)
	}
}

// tellEvery is the least time between two lines of the log about the same.
const tellEvery = time.Second

// teller keeps what fails from filling the log.
type teller struct {
	told   time.Time // when a failure was logged
	untold int       // failures since then that were not
}

// tell reports whether a failure at now is to be logged, and how many before
// it were not.
func (t *teller) tell(now time.Time) (untold int, ok bool) {
	if now.Sub(t.told) < tellEvery {
		t.untold++
		return 0, false
	}
	untold, t.untold, t.told = t.untold, 0, now
	return untold, true
}

// tell is that of the failures of the route.
func (g *gate) tell(now time.Time) (untold int, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failures.tell(now)
}
