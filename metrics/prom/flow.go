package prom

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
)

// flowMetrics are the series of the flows of a process.
type flowMetrics struct {
	records *prometheus.CounterVec
	skips   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	lag     *prometheus.HistogramVec
	refused *prometheus.CounterVec
	stuck   *prometheus.GaugeVec
}

func newFlowMetrics(f factory) flowMetrics {
	return flowMetrics{
		records: f.counter("sluice_records_total", "Records: done, skipped, retried, parked, stopped, unrouted.", "route", "outcome"),
		skips:   f.counter("sluice_skips_total", "Records that a handler skipped, by reason.", "route", "reason"),
		seconds: f.histogram("sluice_handler_seconds", "Duration of a route's calls, waits in sinks included.", []float64{.001, .005, .02, .1, .5, 2, 10, 60}, "route"),
		lag:     f.histogram("sluice_lag_seconds", "Time from a change to its handling.", []float64{.1, .25, .5, 1, 2, 5, 30, 300, 3600}, "route"),
		refused: f.counter("sluice_park_failures_total", "Records that could not be parked yet.", "route"),
		stuck:   f.gauge("sluice_stuck_handlers", "Calls that run for too long.", "route"),
	}
}

const results = flow.Unrouted + 1

// routeSeries is the series of one route. It is looked up once, because the hooks
// run for every record.
type routeSeries struct {
	name    string
	records [results]prometheus.Counter
	seconds prometheus.Observer // nil for no route
	lag     prometheus.Observer // nil for no route

	reasons sync.Map // reason → prometheus.Counter
	known   atomic.Int32
}

// maxReasons limits the series of one route by reason. A handler that puts an id
// into its reason must not fill the memory.
const maxReasons = 50

func (m *flowMetrics) series(route string) *routeSeries {
	s := &routeSeries{name: route}
	for r := range results {
		s.records[r] = m.records.WithLabelValues(route, r.String())
	}
	return s
}

// Flow returns hooks for flows that run the routes of matcher.
func (m *Metrics) Flow(matcher sluice.Matcher) flow.Hooks {
	m.status.know(matcher.Routes())
	byIndex := make([]*routeSeries, len(matcher.Routes()))
	for i, r := range matcher.Routes() {
		s := m.flow.series(r.Name)
		s.seconds = m.flow.seconds.WithLabelValues(r.Name)
		s.lag = m.flow.lag.WithLabelValues(r.Name)
		m.flow.refused.WithLabelValues(r.Name)
		byIndex[i] = s
		m.flow.stuck.WithLabelValues(r.Name)
	}
	none := m.flow.series("")

	return flow.Hooks{
		Handled: func(ctx context.Context, rec *sluice.Record, route *sluice.Route, r flow.Result, took time.Duration, err error) {
			if route == nil {
				none.records[r].Inc()
				return
			}
			s := byIndex[route.Index]
			s.records[r].Inc()
			m.observe(ctx, s.seconds, took.Seconds())
			switch r {
			case flow.Skipped:
				m.flow.skipped(s, err)
			case flow.Done:
				if rec.Origin == sluice.Live && !rec.Created.IsZero() {
					m.observe(ctx, s.lag, time.Since(rec.Created).Seconds())
				}
			}
		},
		ParkFailed: func(_ *sluice.Record, route *sluice.Route, _ error) {
			name := ""
			if route != nil {
				name = route.Name
			}
			m.flow.refused.WithLabelValues(name).Inc()
		},
		Stuck: func(_ *sluice.Record, route *sluice.Route, _ time.Duration, returned bool) {
			g := m.flow.stuck.WithLabelValues(route.Name)
			if returned {
				g.Dec()
			} else {
				g.Inc()
			}
		},
	}
}

// Exemplars has the histograms of calls and lags take exemplars: of returns the labels
// that lead from a context to a trace, or nil. Call it before Flow.
func (m *Metrics) Exemplars(of func(context.Context) map[string]string) { m.exemplar = of }

func (m *Metrics) observe(ctx context.Context, o prometheus.Observer, v float64) {
	if m.exemplar != nil {
		if labels := m.exemplar(ctx); labels != nil {
			o.(prometheus.ExemplarObserver).ObserveWithExemplar(v, labels)
			return
		}
	}
	o.Observe(v)
}

func (m *flowMetrics) skipped(s *routeSeries, err error) {
	skip, ok := errors.AsType[*sluice.SkipError](err)
	if !ok {
		return
	}
	if c, ok := s.reasons.Load(skip.Reason); ok {
		c.(prometheus.Counter).Inc()
		return
	}
	if s.known.Add(1) > maxReasons {
		m.skips.WithLabelValues(s.name, "other").Inc()
		return
	}
	c := m.skips.WithLabelValues(s.name, skip.Reason)
	s.reasons.Store(skip.Reason, c)
	c.Inc()
}
