package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/batch"
)

type batchMetrics struct {
	items, failed  *prometheus.CounterVec
	sizes, seconds *prometheus.HistogramVec
}

func newBatchMetrics(reg prometheus.Registerer) batchMetrics {
	label := []string{"sink"}
	m := batchMetrics{
		items: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_commit_items_total", Help: "Items that sinks committed or failed to commit.",
		}, label),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_commit_items_failed_total", Help: "Items of commits that were answered with an error.",
		}, label),
		sizes: prometheus.NewHistogramVec(histogram("sluice_commit_items",
			"Items in one commit of a sink.", 1, 2, 5, 10, 25, 100, 500), label),
		seconds: prometheus.NewHistogramVec(histogram("sluice_commit_seconds",
			"Duration of one commit of a sink.", .001, .005, .02, .1, .5, 2, 10, 60), label),
	}
	reg.MustRegister(m.items, m.failed, m.sizes, m.seconds)
	return m
}

// Batch returns hooks for the sink of that name.
func (m *Metrics) Batch(sink string) batch.Hooks {
	items, failed := m.batch.items.WithLabelValues(sink), m.batch.failed.WithLabelValues(sink)
	sizes, seconds := m.batch.sizes.WithLabelValues(sink), m.batch.seconds.WithLabelValues(sink)
	return batch.Hooks{Committed: func(c batch.Commit) {
		items.Add(float64(c.Items))
		failed.Add(float64(c.Failed))
		sizes.Observe(float64(c.Items))
		seconds.Observe(c.Took.Seconds())
	}}
}
