package flow

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Throttle pauses or slows a route for a while, as its operator has decided. It
// counts beside the limits of the route's options. The zero Throttle is none.
//
// A record of a paused route waits in its lane and counts in the window of its
// flow: other routes go on until the window is full. The pause is no failure of the
// route, and counts for no clock: nothing is nearer to being parked at its end, except
// what the stream will trim soon.
type Throttle struct {
	Paused      bool
	Concurrency int     // calls at a time at most; 0: no limit
	Rate        float64 // calls a second at most; 0: no limit
}

const (
	// lossNear is the time before the stream trims the oldest record that waits for a
	// throttled route from which an operator must look.
	lossNear = 6 * time.Hour
	// lookEvery is the least time between two looks at all records for the oldest.
	lookEvery = 10 * time.Second
)

// Throttle replaces the throttle of a route, at once for calls that have not begun.
// It returns false if there is no such route.
func (g *Group) Throttle(route string, t Throttle) (ok bool) {
	g.throttling.Lock()
	defer g.throttling.Unlock()
	for _, gt := range g.gates {
		if gt.route.Name != route {
			continue
		}
		ok = true
		if gt.throttle.Paused && !t.Paused { // while no record is parked for its age
			gt.stopped()
			for _, f := range g.joined() {
				f.respite(gt)
			}
		}
		gt.throttleBy(t)
		for _, f := range g.joined() {
			f.throttled()
		}
	}
	return ok
}

func (g *gate) throttleBy(t Throttle) {
	g.mu.Lock()
	now := g.now()
	if g.rate > 0 {
		g.fill(now)
	}
	switch {
	case t.Paused && !g.throttle.Paused:
		g.pausedAt = time.Now()
	case !t.Paused && g.throttle.Paused:
		g.stood += time.Since(g.pausedAt)
	}
	g.throttle, g.filled = t, now
	g.paused.Store(t.Paused)
	g.setLimits()
	g.judge(now)
	g.mu.Unlock()
	g.pump()
}

// stop is a pause that is over.
type stop struct{ from, to time.Time }

// keepStops is how long a gate knows a pause after its end, and mostStops how many.
const (
	keepStops = 2 * trimAfter
	mostStops = 1000
)

// stopped notes the pause that ends.
func (g *gate) stopped() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stops = append(g.stops, stop{g.pausedAt, time.Now()})
	for len(g.stops) > mostStops || time.Since(g.stops[0].to) > keepStops {
		g.stops = g.stops[1:]
	}
}

// stoodSince returns how long the route was paused after from, without a pause that
// lasts, and until when that counts.
func (g *gate) stoodSince(from time.Time) (d time.Duration, to time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	to = from
	for _, s := range g.stops {
		if s.to.After(to) {
			d += s.to.Sub(later(s.from, to))
			to = s.to
		}
	}
	return d, to
}

// respite puts off the parking for age of the records that wait for gt.
func (f *Flow) respite(gt *gate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for e := range f.held {
		for _, t := range e.tasks {
			if t.gate == gt && t.state != done && !t.expires.IsZero() {
				f.putOff(t, now)
			}
		}
	}
}

// putOff puts off the parking of t for its age by the length of the pauses that do not
// count yet, but not beyond half of the time until the stream trims the record. The
// flow's mu is held.
func (f *Flow) putOff(t *task, now time.Time) {
	stood, to := t.gate.stoodSince(t.counted)
	t.counted = to
	if stood <= 0 {
		return
	}
	at := t.expires.Add(stood)
	if left := f.created(t.e).Add(trimAfter).Sub(now); f.trims(t.e) && left > 0 {
		if half := now.Add(left / 2); half.Before(at) {
			at = later(t.expires, half)
		}
	}
	t.expires = at
}

// throttled runs after a change of a throttle: Close may return, and records may be too
// old.
func (f *Flow) throttled() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checkQuiet()
	f.clock.expire(time.Now())
}

// setLimits sets the limits by the route's options and the throttle.
func (g *gate) setLimits() {
	r, t := g.route, g.throttle
	g.concurrency, g.rate, g.burst = r.Concurrency, r.Rate, float64(max(r.Burst, 1))
	if t.Concurrency > 0 && (g.concurrency == 0 || t.Concurrency < g.concurrency) {
		g.concurrency = t.Concurrency
	}
	if t.Rate > 0 && (g.rate == 0 || t.Rate < g.rate) {
		g.rate, g.burst = t.Rate, 1
	}
	g.limited = t.Paused || g.concurrency > 0 || g.rate > 0
}

// fill adds the tokens earned since the last update. A rounding error must not
// cost a wait.
func (g *gate) fill(now time.Time) {
	const nearly = 1e-6
	g.tokens = min(g.burst, g.tokens+now.Sub(g.filled).Seconds()*g.rate)
	if g.tokens > 1-nearly && g.tokens < 1 {
		g.tokens = 1
	}
	g.filled = now
}

// nextToken returns when the rate lets a call through.
func (g *gate) nextToken(now time.Time) time.Time {
	if g.fill(now); g.tokens >= 1 {
		return now
	}
	seconds := min((1-g.tokens)/g.rate, 3600)
	return now.Add(time.Duration(math.Ceil(seconds * float64(time.Second))))
}

// paused reports whether t waits for a paused route.
func (t *task) paused() bool {
	return t.state == queued && !t.doomed && t.gate != nil && t.gate.paused.Load()
}

// Paused returns the paused route that the first unsettled record waits for, and
// "" if that record has other work left. It is safe for concurrent use.
func (f *Flow) Paused() (route string) {
	if !f.group.pauses() {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for e := range f.held {
		if e.ord != f.window.low+1 {
			continue
		}
		for _, t := range e.tasks {
			switch {
			case t.paused():
				route = t.failure.Route
			case t.state != done:
				return ""
			}
		}
	}
	return route
}

// Leave lets Close return when only records of paused routes are left. They stay
// unsettled, and nothing starts them later. It is safe for concurrent use, before
// and during Close.
func (f *Flow) Leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaving = true
	f.checkQuiet()
}

func (g *Group) pauses() bool {
	return slices.ContainsFunc(g.gates, func(gt *gate) bool { return gt.paused.Load() })
}

// join notes a flow in which records wait. The flow's mu is held.
func (g *Group) join(f *Flow) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flows[f] = struct{}{}
}

// leave forgets a closed flow.
func (g *Group) leave(f *Flow) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.flows, f)
}

// joined returns the flows in which records wait.
func (g *Group) joined() []*Flow {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.flows))
}

// oldest returns when the oldest live record was created that waits for the route
// of gt; zero: none waits. It may be as old as lookEvery.
func (g *Group) oldest(gt *gate) (at time.Time) {
	g.mu.Lock()
	at, looked := gt.oldest, time.Since(gt.lookedAt) < lookEvery
	g.mu.Unlock()
	if looked {
		return at
	}
	at = time.Time{}
	for _, f := range g.joined() {
		if t := f.oldest(gt); !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	gt.oldest, gt.lookedAt = at, time.Now()
	return at
}

func (f *Flow) oldest(g *gate) (at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for e := range f.held {
		for _, t := range e.tasks {
			if t.gate != g || t.state == done || !f.trims(e) {
				continue
			}
			if c := f.created(e); at.IsZero() || c.Before(at) {
				at = c
			}
		}
	}
	return at
}

// TimeToTrim is the time until the stream trims the oldest record that waits for a
// throttled route; 0 if it may have done so. ok is false if none waits.
func (s RouteState) TimeToTrim() (left time.Duration, ok bool) {
	if s.Throttle == (Throttle{}) || s.Oldest.IsZero() {
		return 0, false
	}
	return max(0, time.Until(s.Oldest.Add(trimAfter))), true
}

// nearLoss says that the stream will soon trim a record that waits for a throttled
// route, or "".
func (s RouteState) nearLoss() string {
	if left, ok := s.TimeToTrim(); !ok || left > lossNear {
		return ""
	}
	how := "slowed"
	if s.Throttle.Paused {
		how = "paused"
	}
	return fmt.Sprintf("route %q is %s by an operator, and the stream forgets the oldest record that waits for it at %s: resume it: sluice route resume %q",
		s.Route, how, s.Oldest.Add(trimAfter).UTC().Truncate(time.Minute).Format(time.RFC3339), s.Route)
}
