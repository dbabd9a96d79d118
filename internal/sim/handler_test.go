package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
)

// routeNames are those of the routes, of which a plan has one or both.
var routeNames = []string{"a", "b"}

var errHandler = errors.New("the handler fails, as it is told to")

// matcher is the routes of one life.
type matcher struct {
	routes   []*sluice.Route
	routesOf func(item string) []string
}

func (m matcher) Routes() []*sluice.Route { return m.routes }

func (m matcher) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	names := m.routesOf(itemOf(rec))
	for _, r := range m.routes {
		if slices.Contains(names, r.Name) {
			dst = append(dst, r)
		}
	}
	return dst, nil
}

// itemOf names the item that a record is of: its table and its key.
func itemOf(rec *sluice.Record) string {
	v, _ := rec.Keys.Lookup("pk")
	return rec.Table + "/" + v.Str()
}

// matcher returns the routes as l runs them.
func (l *life) matcher() matcher {
	m := matcher{routesOf: l.h.plan.routesOf}
	for i, name := range routeNames[:l.h.plan.routes] {
		r := &sluice.Route{Name: name, Index: i, Backoff: 50 * time.Millisecond, MaxBackoff: time.Second}
		if l.h.plan.seed%5 == 0 {
			r.Attempts = 3
		}
		if l.h.plan.seed%7 == 0 {
			r.Timeout = 300 * time.Millisecond
		}
		limit := l.h.plan.limitOf(name)
		r.Concurrency, r.Rate, r.Burst = limit.concurrency, limit.rate, limit.burst
		r.Handler = func(ctx context.Context, rec *sluice.Record) error { return l.handle(ctx, rec, name) }
		m.routes = append(m.routes, r)
	}
	return m
}

// handle is what an application would do, and its effect is that the checker
// knows of it.
func (l *life) handle(ctx context.Context, rec *sluice.Record, route string) error {
	const kind = "handler"
	item := itemOf(rec)
	var ch *change
	var tries int
	n, ok := l.gate.enter(kind)
	if !ok {
		return nil // a dead process has no effects; the sooner it is done
	}
	left := false
	defer l.gate.unwind(&left, l.h.check)
	ch, tries = l.h.check.attempt(l.n, rec, item, route)
	l.h.content(rec, ch)
	key := []uint64{text(string(rec.Sequence)), text(route), uint64(tries)}
	how, err := l.outcome(ctx, item, route, key)
	done := how == "done" || how == "skipped"
	if l.gate.isShut() { // it died while the handler ran
		left = true
		l.gate.leave(kind, n)
		return nil
	}
	l.h.check.ended(l.n, ch, route, done, ctx.Err() != nil, how)
	left = true
	if !l.gate.leave(kind, n) {
		return nil
	}
	if how == "panics" {
		panic(fmt.Sprintf("the handler panics, as it is told to, for %v", ch))
	}
	if how == "exits" {
		runtime.Goexit()
	}
	return err
}

// outcome decides how a call ends, and lets it take its time.
func (l *life) outcome(ctx context.Context, item, route string, key []uint64) (how string, err error) {
	r, d := l.h.rates(), l.h.draw
	s := l.h.sinks[route]
	takes, err := s.enter()
	defer s.leave()
	if err != nil {
		return "fails: full", err
	}
	if takes > 0 && l.sleep(ctx, takes) != nil {
		return "cut off", errHandler
	}
	if d.chance(r.slow, "slow", key...) {
		if l.sleep(ctx, d.upTo(time.Second, "sleep", key...)) != nil {
			return "cut off", errHandler
		}
	}
	if d.chance(r.stubborn, "stubborn", key...) {
		_ = l.sleep(context.WithoutCancel(ctx), d.upTo(15*time.Second, "stubborn sleep", key...)) // deaf, until it is dead
	}
	if how := s.fails(item); how != "" {
		return how, errHandler
	}
	switch {
	case d.chance(r.panics, "panics", key...):
		if d.chance(0.3, "exits", key...) {
			return "exits", nil
		}
		return "panics", nil
	case d.chance(r.transient, "transient", key...):
		if d.chance(0.2, "retry after", key...) {
			return "fails: later", sluice.RetryAfter(d.upTo(3*time.Second, "after", key...), errHandler)
		}
		return "fails", errHandler
	case l.h.permanent(key[:2]):
		return "fails for good", sluice.Permanent(errHandler)
	case d.chance(r.skips, "skips", key[:2]...):
		return "skipped", sluice.Skip("as it is told to")
	}
	return "done", nil
}

// permanent reports whether a record fails for good at a route, by the keys of
// both.
func (h *history) permanent(key []uint64) bool {
	return h.draw.chance(h.plan.rates.permanent, "permanent", key...)
}
