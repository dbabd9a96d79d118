package prom

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/metrics"
)

// declared registers the metrics that packages have declared.
func (m *Metrics) declared(reg prometheus.Registerer) {
	m.counters, m.histograms = map[*metrics.Metric]*prometheus.CounterVec{}, map[*metrics.Metric]*prometheus.HistogramVec{}
	for _, one := range metrics.All() {
		switch {
		case one.Name == "":
		case one.Buckets != nil:
			m.histograms[one] = prometheus.NewHistogramVec(histogram(one.Name, one.Help, one.Buckets...), one.Labels)
			reg.MustRegister(m.histograms[one])
		default:
			m.counters[one] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: one.Name, Help: one.Help}, one.Labels)
			reg.MustRegister(m.counters[one])
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
