package prom

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/metrics"
)

// declared registers the metrics that packages have declared.
func (m *Metrics) declared(f factory) {
	m.counters, m.histograms = map[*metrics.Metric]*prometheus.CounterVec{}, map[*metrics.Metric]*prometheus.HistogramVec{}
	for _, one := range metrics.All() {
		switch {
		case one.Name == "":
		case one.Buckets != nil:
			m.histograms[one] = f.histogram(one.Name, one.Help, one.Buckets, one.Labels...)
		default:
			m.counters[one] = f.counter(one.Name, one.Help, one.Labels...)
		}
	}
}

// Bind implements metrics.Meter.
func (m *Metrics) Bind(of *metrics.Metric, labels ...string) func(float64) {
	switch {
	case of.Name == "":
		return nil
	case m.histograms[of] != nil:
		return m.histograms[of].WithLabelValues(labels...).Observe
	case m.counters[of] != nil:
		return m.counters[of].WithLabelValues(labels...).Add
	}
	panic(fmt.Sprintf("prom: %s was declared after New: declare it in a variable of a package", of.Name))
}
