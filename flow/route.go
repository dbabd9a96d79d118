package flow

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice"
)

// State says how well a route works. Nothing that fails is parked as poison
// but while its route is Healthy.
type State uint8

const (
	// Works: its calls succeed, but for those of a few items.
	Works State = iota
	// Overloaded: calls are refused for load; as many run at a time as succeed.
	Overloaded
	// Partial is a partial outage: it fails for some items and succeeds for
	// others. Those that fail are retried alone.
	Partial
	// Recovering: after an outage calls are let through step by step.
	Recovering
	// Outage: nothing succeeds. One probe at a time goes through.
	Outage
)

var stateNames = [...]string{"works", "overloaded", "partial outage", "recovering", "outage"}

// AllStates lists every State, the best first.
func AllStates() []State { return []State{Works, Overloaded, Partial, Recovering, Outage} }

// String returns the state's name in lower case, as a metric's label.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Healthy reports whether a failure tells of the record rather than of the
// route.
func (s State) Healthy() bool { return s <= Overloaded }

// RouteState is what a Group knows of a route. While nothing fails it counts
// nothing.
type RouteState struct {
	Route   string
	State   State
	Since   time.Time // of State
	Err     error     // of the last call that failed; nil when none is to be made again
	Success time.Time // the last one since something began to fail; zero: none, or nothing fails
	Failing int       // distinct items whose last call failed
	Waiting int       // records that wait for the route
	Limit   int       // calls at a time that the route was seen to take; 0: no limit was found
	Parked  int       // records parked in the last 10 minutes, but by Flow.Park

	failsSince time.Time // the first call after the last success that failed or was refused; zero: none did
	crowded    bool      // more items fail than is tolerated
	troubled   time.Time // State was Works until then, last
}

const (
	proofAfter   = 10 * time.Minute // calls fail, or are refused, and none succeeds for so long: somebody is to look
	parkedAtMost = 20               // records parked in 10 minutes before somebody is to look
)

// Trouble says in a sentence what somebody should see to, or "" when the route
// works, or has nothing to do.
func (s RouteState) Trouble() string {
	since, others := s.Since.Format(time.RFC3339), "works for others"
	quiet := !s.failsSince.IsZero() && time.Since(s.failsSince) > quietAfter
	if quiet {
		others = "nothing has succeeded since " + s.failsSince.Format(time.RFC3339)
	}
	switch {
	case s.State == Outage:
		return fmt.Sprintf("route %q fails for every record since %s, and nothing of it is lost meanwhile: repair what it calls: %v", s.Route, since, s.Err)
	case s.State == Partial:
		return fmt.Sprintf("route %q fails for %d items since %s and %s; they are retried, and none is parked before it is too old: repair what it calls, or have bad records parked with sluice park --route %q: %v", s.Route, s.Failing, since, others, s.Route, s.Err)
	case s.State == Recovering && s.crowded:
		return fmt.Sprintf("route %q recovers from an outage since %s, and %d items still fail or wait for their turn; nothing is to be done while they become fewer: %v", s.Route, since, s.Failing, s.Err)
	case quiet && time.Since(s.failsSince) > proofAfter:
		return fmt.Sprintf("route %q: %s to tell whether the route or the %d records that wait for it are at fault: repair what it calls: %v", s.Route, others, s.Waiting, s.Err)
	case s.Parked > parkedAtMost:
		return fmt.Sprintf("route %q had %d records parked in the last 10 minutes: look at them with sluice dlq list --route %q", s.Route, s.Parked, s.Route)
	}
	return ""
}

// Group holds what flows of one process share about their routes: how well
// they work, and their limits. It is safe for concurrent use.
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

// States tells of every route, in the order of the Matcher's Routes.
func (g *Group) States() []RouteState {
	out := make([]RouteState, len(g.gates))
	for i, gt := range g.gates {
		out[i] = gt.report()
	}
	return out
}

// announce logs a state that a route has moved to.
func (f *Flow) announce(g *gate) {
	f.log(g)
	g.pump() // the new state may let calls through
}

// log writes the route's state as it is now, once. So the last line of the log is
// true, whichever of several goroutines comes last.
func (f *Flow) log(g *gate) {
	g.logs.Lock()
	defer g.logs.Unlock()
	s, moved := g.news()
	if !moved {
		return
	}
	level, msg := slog.LevelInfo, "route works again"
	attrs := []any{"route", s.Route}
	switch s.State {
	case Works:
		if s.Waiting == 0 && s.Success.Before(s.troubled) {
			msg = "nothing waits for the route any more: no call has succeeded meanwhile"
		}
	case Outage:
		level, msg = slog.LevelWarn, "route fails for every record: one probe at a time goes through until it succeeds"
		attrs = append(attrs, "error", s.Err)
	case Partial:
		level, msg = slog.LevelWarn, "route fails for some items: they are retried alone, and none is parked as poison"
		attrs = append(attrs, "failing", s.Failing, "error", s.Err)
	case Overloaded:
		msg = "route refuses calls for load: fewer run at a time"
		attrs = append(attrs, "limit", s.Limit, "error", s.Err)
	case Recovering:
		msg = "route works again: calls are let through step by step"
	}
	f.opts.Logger.Log(context.Background(), level, msg, attrs...)
}
