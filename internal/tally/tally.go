// Package tally keeps the values of metrics in memory, for tests and for reports
// of commands.
package tally

import (
	"cmp"
	"strings"
	"sync"

	"github.com/sluicehq/sluice/metrics"
)

// Tally is a metrics.Meter. The zero value is ready, and safe for concurrent use.
type Tally struct {
	mu     sync.Mutex
	values map[string]map[string][]float64 // by the metric's name, and the values of its labels with commas
}

// Bind is that of metrics.Meter.
func (t *Tally) Bind(m *metrics.Metric, labels ...string) func(float64) {
	name, of := cmp.Or(m.Name, m.CloudWatch), strings.Join(labels, ",")
	return func(v float64) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.values == nil {
			t.values = map[string]map[string][]float64{}
		}
		if t.values[name] == nil {
			t.values[name] = map[string][]float64{}
		}
		t.values[name][of] = append(t.values[name][of], v)
	}
}

// By returns the sums of the metric of that name, by the values of its labels with
// commas between them.
func (t *Tally) By(name string) map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	sums := map[string]int{}
	for of, values := range t.values[name] {
		for _, v := range values {
			sums[of] += int(v)
		}
	}
	return sums
}

// Sum returns the sum of all values of the metric of that name.
func (t *Tally) Sum(name string) (n int) {
	for _, v := range t.By(name) {
		n += v
	}
	return n
}

// Values returns the recorded values of the metric of that name with these label
// values, in order.
func (t *Tally) Values(name, labels string) []float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]float64(nil), t.values[name][labels]...)
}

// Func is a metrics.Meter that calls a function with each value: name is the
// metric's, and labels are joined with commas.
type Func func(name, labels string, value float64)

// Bind is that of metrics.Meter.
func (f Func) Bind(m *metrics.Metric, labels ...string) func(float64) {
	of := strings.Join(labels, ",")
	return func(v float64) { f(m.Name, of, v) }
}
