package flow

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
)

// State says how well a route works. A failing record is parked as poison only
// while its route is Healthy.
type State uint8

const (
	// Works: calls succeed, except for a few items.
	Works State = iota
	// Overloaded: the route refuses calls for load. The flow runs as many as
	// succeed.
	Overloaded
	// Partial is a partial outage: the route fails for some items and succeeds
	// for others. Failing records are retried alone.
	Partial
	// Recovering: after an outage calls pass step by step.
	Recovering
	// Outage: nothing succeeds. One probe at a time passes.
	Outage
)

var stateNames = [...]string{"works", "overloaded", "partial outage", "recovering", "outage"}

// String returns the state's name in lower case, as a metric's label.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Healthy reports whether a failure points to the record and not to the route.
func (s State) Healthy() bool { return s <= Overloaded }

// RouteState is the state of a route in a Group. The numbers are zero while
// nothing fails and nothing is paused.
type RouteState struct {
	Route   string
	State   State
	Since   time.Time // start of State
	Err     error     // of the last failed call; nil when no call is to be retried
	Success time.Time // last success since failures began; zero: none, or nothing fails
	Failing int       // distinct items whose last call failed
	Waiting int       // records that wait for the route
	Limit   int       // learned limit of calls at a time; 0: none
	Parked  int       // records parked in the last 10 minutes, except by Flow.Park

	Throttle Throttle
	// Oldest is the creation of the oldest record that waits for a throttled route,
	// by this machine's clock. The stream trims it 24 hours later. Zero: none waits.
	Oldest time.Time

	failsSince time.Time // first failed or refused call after the last success; zero: none
	crowded    bool      // too many items fail
	troubled   time.Time // last time that State was not Works
}

const (
	proofAfter   = 10 * time.Minute // time without a success after which an operator must look
	parkedAtMost = 20               // records parked in 10 minutes after which an operator must look
)

// Trouble describes in one sentence what an operator must look at. It is "" when
// the route works or is idle.
func (s RouteState) Trouble() string {
	since, others := s.Since.Format(time.RFC3339), "works for others"
	quiet := !s.failsSince.IsZero() && time.Since(s.failsSince) > quietAfter
	if quiet || s.Success.IsZero() && !s.failsSince.IsZero() {
		others = "nothing has succeeded since " + s.failsSince.Format(time.RFC3339)
	}
	if near := s.nearLoss(); near != "" || s.Throttle.Paused { // else nobody waits for a success
		return near
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

// Group is the state of routes that flows of one process share: how well each
// route works, and its limits. It is safe for concurrent use.
type Group struct {
	gates []*gate

	throttling sync.Mutex // held by Throttle, taken before a flow's mu

	handsOver atomic.Bool // HandOver was called

	mu       sync.Mutex         // taken after a flow's mu, never before
	flows    map[*Flow]struct{} // in which records wait
	handed   map[handedKey]handed
	handedAt time.Time
}

// NewGroup returns a Group for the routes of m.
func NewGroup(m sluice.Matcher) *Group {
	routes := m.Routes()
	g := &Group{gates: make([]*gate, len(routes)), flows: make(map[*Flow]struct{})}
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

// States returns the state of every route, in the order of the Matcher's Routes.
func (g *Group) States() []RouteState {
	g.forgetHanded()
	out := make([]RouteState, len(g.gates))
	for i, gt := range g.gates {
		if out[i] = gt.report(); out[i].Throttle != (Throttle{}) && out[i].Waiting > 0 {
			out[i].Oldest = g.oldest(gt)
		}
	}
	return out
}

// announce logs a route's new state.
func (f *Flow) announce(g *gate) {
	f.log(g)
	g.pump() // the new state may let calls through
}

// log logs the route's current state once. The last line is always true, whichever
// goroutine writes it.
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
