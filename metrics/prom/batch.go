package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/batch"
)

type batchMetrics struct {
	items          *prometheus.CounterVec
	sizes, seconds *prometheus.HistogramVec
}

func newBatchMetrics(reg prometheus.Registerer) batchMetrics {
	label := []string{"sink"}
	m := batchMetrics{
		items: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_commit_items_total", Help: "Items in commits: committed or failed.",
		}, []string{"sink", "outcome"}),
		sizes: prometheus.NewHistogramVec(histogram("sluice_commit_batch_items",
			"Items of one commit.", 1, 2, 5, 10, 25, 100, 500), label),
		seconds: prometheus.NewHistogramVec(histogram("sluice_commit_seconds",
			"Duration of one commit.", .001, .005, .02, .1, .5, 2, 10, 60), label),
	}
	reg.MustRegister(m.items, m.sizes, m.seconds)
	return m
}

// Batch returns hooks for the sink of that name.
func (m *Metrics) Batch(sink string) batch.Hooks {
	committed, failed := m.batch.items.WithLabelValues(sink, "committed"), m.batch.items.WithLabelValues(sink, "failed")
	sizes, seconds := m.batch.sizes.WithLabelValues(sink), m.batch.seconds.WithLabelValues(sink)
	return batch.Hooks{Committed: func(c batch.Commit) {
		committed.Add(float64(c.Items - c.Failed))
		failed.Add(float64(c.Failed))
		sizes.Observe(float64(c.Items))
		seconds.Observe(c.Took.Seconds())
	}}
}
