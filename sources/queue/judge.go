package queue

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/outcomes"
)

const (
	breakAfter  = 5      // consecutive failures of a route, for several messages, that make an outage
	remembered  = 10_000 // most failed messages to remember
	firstPause  = time.Second
	mostPausing = 30 * time.Second
)

// judge distinguishes failing messages from failing routes. It knows only the
// messages of this process. It is not flow's judge, whose clocks stand still while
// a message is in its queue: see
// docs/decisions/0006-queues-retry-for-themselves.md.
type judge struct {
	mu      sync.Mutex
	stale   time.Duration // an outage without a failure for this time is over
	routes  map[string]*routeState
	failing map[string]*failing
	order   []string // of failing, oldest first
}

type routeState struct {
	times   uint64 // successes after a failure, and the first success
	ok      bool   // a success came after the last failure
	streak  int
	first   string // message of the streak's first failure
	several bool
	open    bool
	since   time.Time
	last    time.Time // last failure
	err     error
}

// failing is a failed message, at the route that failed last.
type failing struct {
	route   string
	seen    uint64 // times of its route at that failure
	counted int    // failures while its route succeeded for others
	first   error
	firstAt time.Time
}

func newJudge(stale time.Duration) *judge {
	return &judge{stale: stale, routes: map[string]*routeState{}, failing: map[string]*failing{}}
}

func (j *judge) route(name string) *routeState {
	r := j.routes[name]
	if r == nil {
		r = new(routeState)
		j.routes[name] = r
	}
	return r
}

// succeeded notes that a call of the route succeeded.
func (j *judge) succeeded(route string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.route(route)
	if !r.ok {
		r.ok = true
		r.times++
	}
	r.streak, r.several, r.open, r.err = 0, false, false, nil
}

// failed notes that the route failed for a message, and adds its first failure to
// f. counted is the number of the message's failures while the route succeeded for
// others: since its previous failure, or, for its first, since the route's last
// failure. Refusals for load do not count. open: the route fails for all.
func (j *judge) failed(route, id string, err error, f *sluice.Failure) (counted int, open bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.route(route)
	counts := !outcomes.IsOverloaded(err)
	m := j.failing[id]
	if m == nil || m.route != route {
		m = &failing{route: route, first: err, firstAt: f.FirstAt}
		if counts && r.ok {
			m.counted++
		}
		j.remember(id, m)
	} else if counts && m.seen != r.times {
		m.counted++
	}
	m.seen = r.times
	f.First, f.FirstAt = m.first, m.firstAt
	r.ok, r.err = false, err
	if r.streak == 0 {
		r.first = id
	}
	r.several = r.several || r.first != id
	r.streak++
	r.last = f.LastAt
	if !r.open && r.streak >= breakAfter && r.several {
		r.open, r.since = true, f.LastAt
	}
	return m.counted, r.open
}

func (j *judge) remember(id string, m *failing) {
	j.failing[id] = m
	j.order = append(j.order, id)
	for len(j.failing) > remembered || len(j.order) > 2*remembered {
		delete(j.failing, j.order[0])
		j.order = j.order[1:]
	}
}

// forget drops the record of a message.
func (j *judge) forget(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.failing, id)
}

// outages returns the routes that fail for every message.
func (j *judge) outages() (all []flow.RouteState) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, r := range j.routes {
		if r.open && time.Since(r.last) < j.stale {
			all = append(all, flow.RouteState{Route: name, State: flow.Outage, Since: r.since, Err: r.err})
		}
	}
	slices.SortFunc(all, func(a, b flow.RouteState) int { return strings.Compare(a.Route, b.Route) })
	return all
}

// pace slows down receiving while every message fails. The queue counts receives,
// and a redrive policy would move all of its messages to the dead letters.
type pace struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

func (p *pace) failed(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.until) {
		return // of messages in hand that fail together
	}
	p.failures++
	p.until = now.Add(backoff.Half(firstPause, mostPausing, p.failures))
}

func (p *pace) succeeded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = 0
}

// wait returns when the next receive may start. slow: ask for one message only.
func (p *pace) wait(ctx context.Context) (slow bool) {
	for {
		p.mu.Lock()
		slow, d := p.failures > 0, time.Until(p.until)
		p.mu.Unlock()
		if d <= 0 || backoff.Sleep(ctx, d) != nil {
			return slow
		}
	}
}
