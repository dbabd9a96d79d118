package flow

import "time"

// now is the time of the gate's clocks, which stand still in a pause. mu is held.
func (g *gate) now() time.Time { return g.at(time.Now()) }

// at is what the gate's clocks show at now.
func (g *gate) at(now time.Time) time.Time {
	if g.throttle.Paused {
		now = g.pausedAt
	}
	return now.Add(-g.stood)
}

// healthyTime is the total time for which the route was healthy.
func (g *gate) healthyTime(now time.Time) time.Duration {
	if g.state.Healthy() {
		return g.healthy + now.Sub(g.healthyAt)
	}
	return g.healthy
}

// moves updates the route's state and reports whether the log must report it. mu
// is held.
func (g *gate) moves(now time.Time) (moved bool) {
	g.judge(now)
	return g.state != g.told
}

// judge updates the route's state. mu is held.
func (g *gate) judge(now time.Time) {
	l := &g.limiter
	if g.waiting == 0 && !time.Now().Before(g.awaits) { // no task needs a probe
		g.outage.on, g.ramps, g.streak, g.fresh = false, false, streak{}, streak{}
		if l.limit > 0 && g.load() == 0 && now.Sub(l.cutAt) > forgetAfter {
			l.limit = 0
		}
	}
	if l.trial.on && (now.Sub(l.cutAt) > trialAtMost || g.waiting == 0 && g.load() == 0) {
		l.takeBack(now)
	}
	if len(g.queues) > 0 || g.load() >= int(l.limit) {
		g.binds = now
	}
	g.ramps = g.ramps && l.doubles && now.Sub(g.binds) < rampIdle
	if !g.ramps && l.doubles { // the route takes all calls
		l.limit, l.doubles = 0, false
	}
	s := Works
	switch {
	case g.outage.on:
		s = Outage
	case g.ramps:
		s = Recovering
	case g.isCrowded(now):
		s = Partial
	case l.limit > 0:
		s = Overloaded
	}
	g.calm.Store(!g.limited && s == Works && g.told == Works && g.waiting == 0 && g.streak.n == 0 && len(g.items.failed) == 0)
	g.paces.Store(g.outage.on || g.ramps)
	g.limit.Store(int32(l.limit))
	if s != g.state {
		g.healthy, g.healthyAt = g.healthyTime(now), now
		if g.state == Works {
			g.troubled = time.Now()
		}
		g.state, g.since = s, time.Now()
	}
}

// isCrowded reports whether too many items fail, or failed a moment ago, compared
// with the items that succeed.
func (g *gate) isCrowded(now time.Time) bool {
	if g.items.crowded(now) {
		g.crowded = now
	}
	return g.items.failing > 0 && now.Sub(g.crowded) < partialAtLeast
}

// trouble returns the last error of a route in an outage, or nil.
func (g *gate) trouble() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.outage.on {
		return nil
	}
	return g.err
}

func (g *gate) report() RouteState {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reported()
}

// news returns the route's state, and whether the log has not reported it yet. It
// marks the state as reported.
func (g *gate) news() (s RouteState, moved bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s = g.reported()
	moved, g.told = s.State != g.told, s.State
	return s, moved
}

// reported is the route's state. mu is held.
func (g *gate) reported() RouteState {
	now := g.now()
	g.items.turn(now)
	g.judge(now)
	s := RouteState{
		Route: g.route.Name, State: g.state, Since: g.since, Success: g.succeededAt,
		Failing: g.items.failing, Waiting: g.waiting, Limit: int(g.limiter.limit), Parked: g.items.parkedLately(),
		Throttle: g.throttle,
	}
	if g.streak.n > 0 {
		s.failsSince = time.Now().Add(-now.Sub(g.streak.since))
	}
	if s.State != Works || s.Failing > 0 || g.streak.n > 0 {
		s.Err = g.err
	}
	s.crowded, s.troubled = g.items.crowded(now), g.troubled
	return s
}
