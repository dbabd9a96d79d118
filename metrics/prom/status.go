package prom

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
)

// Status is functions that each scrape calls. A nil func has no series. The others
// run concurrently if scrapes do, and should take milliseconds.
type Status struct {
	Ready       func() bool
	Held        func() []flow.Held        // items that wait, of all flows
	DeadLetters func() []deadletter.Count // current letters
	Routes      func() []flow.RouteState  // of every route; of several with one name the worst counts
}

// statusMetrics calls Status at each scrape.
type statusMetrics struct {
	descs
	ready, held, oldest, letters, state, failing, limit, paused, slowed, pauseLoss *prometheus.Desc

	mu     sync.Mutex
	status Status
	routes []string // routes whose series start at 0
}

func newStatusMetrics() *statusMetrics {
	m := &statusMetrics{}
	m.state = m.desc("sluice_route_state", "1 for the route's state: works, overloaded, partial outage, recovering, outage.", "route", "state")
	m.failing = m.desc("sluice_route_failing_items", "Items whose last call failed.", "route")
	m.limit = m.desc("sluice_route_concurrency_limit", "Calls that the route can take; 0 without a limit.", "route")
	m.paused = m.desc("sluice_route_paused", "1 while an operator has paused the route.", "route")
	m.slowed = m.desc("sluice_route_slowed", "1 while an operator has slowed the route.", "route")
	m.pauseLoss = m.desc("sluice_route_pause_time_to_loss_seconds", "Time until the stream forgets the oldest record that waits for a paused or slowed route; else 86400.", "route")
	m.ready = m.desc("sluice_ready", "1 while /readyz says ok.")
	m.held = m.desc("sluice_held_lanes", "Items whose changes wait behind a failure or a stuck handler.", "route")
	m.oldest = m.desc("sluice_held_lanes_oldest_seconds", "Longest wait of a held item.", "route")
	m.letters = m.desc("sluice_dead_letters", "Dead letters now; gaps have no route.", "route", "kind")
	return m
}

// Ask makes each scrape call s. Call Ask once, at the start.
func (m *Metrics) Ask(s Status) {
	m.status.mu.Lock()
	defer m.status.mu.Unlock()
	m.status.status = s
}

func (m *statusMetrics) know(rs []*sluice.Route) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range rs {
		if !slices.Contains(m.routes, r.Name) {
			m.routes = append(m.routes, r.Name)
		}
	}
}

func (m *statusMetrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	s, routes := m.status, m.routes
	m.mu.Unlock()
	gauge := gauges(ch)
	if s.Routes != nil {
		worst := make(map[string]flow.RouteState)
		for _, r := range s.Routes() {
			w, ok := worst[r.Route]
			if r.Throttle == (flow.Throttle{}) { // only that of a group has it, not that of a queue
				r.Throttle, r.Oldest = w.Throttle, w.Oldest
			}
			if ok && r.State <= w.State {
				w.Throttle, w.Oldest = r.Throttle, r.Oldest
				r = w
			}
			worst[r.Route] = r
		}
		for name, r := range worst {
			for state := flow.Works; state <= flow.Outage; state++ {
				gauge(m.state, oneIf(r.State == state), name, state.String())
			}
			gauge(m.failing, float64(r.Failing), name)
			gauge(m.limit, float64(r.Limit), name)
			left, ok := r.TimeToTrim()
			if !ok {
				left = retention
			}
			gauge(m.paused, oneIf(r.Throttle.Paused), name)
			gauge(m.slowed, oneIf(!r.Throttle.Paused && r.Throttle != (flow.Throttle{})), name)
			gauge(m.pauseLoss, left.Seconds(), name)
		}
	}
	if s.Ready != nil {
		gauge(m.ready, oneIf(s.Ready()))
	}
	if s.Held != nil {
		lanes, oldest := make(map[string]int), make(map[string]time.Duration)
		for _, r := range routes {
			lanes[r] = 0
		}
		for _, h := range s.Held() {
			lanes[h.Route]++
			oldest[h.Route] = max(oldest[h.Route], h.Age)
		}
		for route, n := range lanes {
			gauge(m.held, float64(n), route)
			gauge(m.oldest, oldest[route].Seconds(), route)
		}
	}
	if s.DeadLetters != nil {
		type entries struct{ route, kind string }
		letters := make(map[entries]int)
		for _, r := range routes {
			letters[entries{r, "record"}] = 0
		}
		for _, c := range s.DeadLetters() {
			letters[entries{c.Route, c.Kind}] += c.N
		}
		for e, n := range letters {
			gauge(m.letters, float64(n), e.route, e.kind)
		}
	}
}
