// Package metrics connects code that counts (the router, handlers, sinks) with
// metric systems. A package declares a [Metric] as a variable and records values
// in a [Series]. A [Meter] receives them: prom.Metrics for Prometheus, emf.Metrics
// for CloudWatch. Both export every declared metric, so a new one needs no other
// change. Your own metrics work the same way:
//
//	var skipped = metrics.New(metrics.Metric{Name: "orders_skipped_total", Help: "Orders skipped, by reason.", Labels: []string{"reason"}})
//
//	s := skipped.Of(setup.Metrics) // once
//	s.Add(1, "too old")            // for each event
package metrics

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Metric declares a counter or a histogram.
type Metric struct {
	// Name in Prometheus; "" hides the metric there. A name that ends with
	// _seconds is exported in milliseconds to CloudWatch.
	Name    string
	Help    string
	Labels  []string  // at most two
	Buckets []float64 // upper bounds of a histogram; nil is a counter

	// CloudWatch is the name in the embedded metric format; "" hides the metric
	// there, because CloudWatch charges for each metric. Dimension is its name
	// for the first label; "" sums over all label values.
	CloudWatch, Dimension string
}

// Meter receives the values of metrics. It is safe for concurrent use.
type Meter interface {
	// Bind returns a function for the values of m with these label values. It
	// adds to a counter or observes in a histogram. nil means that the meter
	// ignores the metric.
	Bind(m *Metric, labels ...string) func(value float64)
}

var (
	mu  sync.Mutex
	all []*Metric
)

// New declares a metric. Call it in a package variable: the metric must exist
// before a meter does. New panics on a duplicate name.
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

// All returns the declared metrics.
func All() []*Metric {
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(all)
}

type labels = [2]string

// Series is the values of one metric for one meter. A nil Series drops values. It
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

// Add adds v to a counter, or observes it in a histogram. values are the label
// values. Add does not allocate for label values that it has seen.
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

// Bind creates the series of these label values, with 0 in a counter, so that the
// first increase of an alarm is visible. It returns the function that adds to the
// series, or nil if the meter ignores it.
func (s *Series) Bind(values ...string) func(v float64) {
	if s == nil {
		return nil
	}
	if len(values) != len(s.metric.Labels) {
		panic(fmt.Sprintf("metrics: %s%s has labels %q and was given %d values: %s", s.metric.Name, s.metric.CloudWatch, s.metric.Labels, len(values), strings.Join(values, ", ")))
	}
	return s.meter.Bind(s.metric, slices.Clone(values)...)
}
