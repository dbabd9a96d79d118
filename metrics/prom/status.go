package prom

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
)

// Status is what a program is asked at each scrape. Funcs that are nil have no
// series; the others are called concurrently when scrapes are, and should take
// milliseconds.
type Status struct {
	Ready       func() bool
	Held        func() []flow.Held        // items whose lanes wait, of all flows
	DeadLetters func() []deadletter.Count // that are there now
	Outages     func() []flow.Outage      // of what no hook tells of, such as queues
}

// statusMetrics ask at each scrape.
type statusMetrics struct {
	ready, held, oldest, letters, breaker *prometheus.Desc

	mu     sync.Mutex
	status Status
	routes []string        // that have a series with 0, too
	open   map[string]bool // routes whose breaker is, as the hooks tell
}

func newStatusMetrics(reg prometheus.Registerer) *statusMetrics {
	m := &statusMetrics{
		open: make(map[string]bool),
		breaker: prometheus.NewDesc("sluice_breaker_open",
			"1 while a route fails for every record, so that only probes go through, or for every message of a queue.", []string{"route"}, nil),
		ready: prometheus.NewDesc("sluice_ready", "1 while /readyz says ok. It says why when it does not.", nil, nil),
		held: prometheus.NewDesc("sluice_held_lanes",
			"Items of streams whose changes wait because one of them failed and will be tried again, or because its handler does not return. Others go on.", []string{"route"}, nil),
		oldest: prometheus.NewDesc("sluice_held_lanes_oldest_seconds",
			"How long the first of them has been waiting; 0 where none is.", []string{"route"}, nil),
		letters: prometheus.NewDesc("sluice_dead_letters",
			"Dead letters that are there now: records that failed for good, and gaps. The route is empty where an entry is for all. Counted twice a minute at most.", []string{"route", "kind"}, nil),
	}
	reg.MustRegister(m)
	return m
}

// Ask has s asked at each scrape. It is called once, at the start.
func (m *Metrics) Ask(s Status) {
	m.status.mu.Lock()
	defer m.status.mu.Unlock()
	m.status.status = s
}

func (m *statusMetrics) know(rs []*sluice.Route) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range rs {
		m.routes = append(m.routes, r.Name)
	}
}

// breaks notes what a flow's hook tells of a breaker.
func (m *statusMetrics) breaks(route string, open bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[route] = open
}

func (m *statusMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.breaker
	ch <- m.ready
	ch <- m.held
	ch <- m.oldest
	ch <- m.letters
}

func (m *statusMetrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	s, routes, open := m.status, m.routes, maps.Clone(m.open)
	m.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if s.Outages != nil {
		for _, o := range s.Outages() {
			open[o.Route] = true
		}
	}
	for _, r := range slices.Compact(slices.Sorted(slices.Values(routes))) {
		gauge(m.breaker, oneIf(open[r]), r)
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
