// Package metrics is the seam between what counts (the router, handlers, sinks)
// and where numbers go. A package declares a [Metric] as a variable and records
// values by a [Series]. A [Meter] takes them: prom.Metrics to Prometheus, and
// emf.Metrics to CloudWatch. Both take all metrics that the program declares, so
// that a new one needs no change elsewhere, yours included:
//
//	var skipped = metrics.New(metrics.Metric{Name: "orders_skipped_total", Help: "Orders skipped, by reason.", Labels: []string{"reason"}})
//
//	s := skipped.Of(setup.Metrics) // once
//	s.Add(1, "too old")            // where it happens
package metrics

import (
	"fmt"
	"slices"
	"sync"
)

// Metric declares a counter or a histogram.
type Metric struct {
	// Name in Prometheus; "" is not there. One that ends with _seconds is in
	// milliseconds in CloudWatch.
	Name    string
	Help    string
	Labels  []string  // two at most
	Buckets []float64 // of a histogram, their upper bounds; nil is a counter

	// CloudWatch is the name in the embedded metric format; "" is not there:
	// CloudWatch takes money for each metric. Dimension is what the first label is
	// called there; "" adds up the values of all labels.
	CloudWatch, Dimension string
}

// Meter takes the values of metrics. It is safe for concurrent use.
type Meter interface {
	// Bind returns the function that takes the values of m with these values of
	// its labels: an addition to a counter, an observation of a histogram. nil: the
	// meter does not want them.
	Bind(m *Metric, labels ...string) func(value float64)
}

var (
	mu  sync.Mutex
	all []*Metric
)

// New declares a metric, in a variable of a package: it must be there before a
// meter is. It panics when a metric of that name is declared already.
func New(m Metric) *Metric {
	mu.Lock()
	defer mu.Unlock()
	for _, other := range all {
		if m.Name != "" && m.Name == other.Name || m.CloudWatch != "" && m.CloudWatch == other.CloudWatch {
			panic(fmt.Sprintf("metrics: %q, %q is declared twice", m.Name, m.CloudWatch))
		}
	}
	if len(m.Labels) > len(labels{}) || m.Dimension != "" && len(m.Labels) == 0 {
		panic(fmt.Sprintf("metrics: %q has labels %q and dimension %q: want at most %d labels, and one for a dimension", m.Name, m.Labels, m.Dimension, len(labels{})))
	}
	all = append(all, &m)
	return &m
}

// All returns the metrics that the program has declared.
func All() []*Metric {
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(all)
}

type labels = [2]string

// Series are the values of one metric for one meter. A nil Series drops them. It
// is safe for concurrent use.
type Series struct {
	metric *Metric
	meter  Meter

	mu    sync.RWMutex
	bound map[labels]func(float64)
}

// Of returns the series of m that meter takes; nil for a nil meter, and for one whose
// method Wants(*Metric) bool says no.
func (m *Metric) Of(meter Meter) *Series {
	if meter == nil {
		return nil
	}
	if w, ok := meter.(interface{ Wants(*Metric) bool }); ok && !w.Wants(m) {
		return nil
	}
	return &Series{metric: m, meter: meter, bound: map[labels]func(float64){}}
}

// Add adds v to a counter, or observes it in a histogram, with the values of the
// metric's labels. It does not allocate for values that it has seen.
func (s *Series) Add(v float64, values ...string) {
	if s == nil {
		return
	}
	var key labels
	copy(key[:], values)
	s.mu.RLock()
	add, ok := s.bound[key]
	s.mu.RUnlock()
	if !ok {
		add = s.Bind(values...)
		s.mu.Lock()
		s.bound[key] = add
		s.mu.Unlock()
	}
	if add != nil {
		add(v)
	}
}

// Bind has the series of these values of labels appear, with 0 in a counter, and
// returns what adds to it; nil when nobody wants that. So the first increase of an
// alarm is seen.
func (s *Series) Bind(values ...string) func(v float64) {
	if s == nil {
		return nil
	}
	return s.meter.Bind(s.metric, slices.Clone(values)...)
}
