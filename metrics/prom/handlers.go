package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/handlers/rollup"
)

type handlerMetrics struct {
	written, unchanged, dropped *prometheus.CounterVec // by projections
	notShown                    *prometheus.CounterVec // changes, by projections
	lost                        *prometheus.CounterVec // by counts
}

func newHandlerMetrics(reg prometheus.Registerer) handlerMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"table"}, labels...))
		reg.MustRegister(c)
		return c
	}
	return handlerMetrics{
		written:   counter("sluice_projection_documents_total", "Documents written (index), deleted, or already newer.", "action"),
		unchanged: counter("sluice_projection_unchanged_total", "Changes that leave the document as it is."),
		dropped:   counter("sluice_projection_dropped_fields_total", "Attributes left out: another field has their name."),
		notShown:  counter("sluice_projection_lost_total", "Changes that a document does not show (not_raised, began_anew).", "reason"),
		lost:      counter("sluice_count_additions_lost_total", "Additions lost because the parent is missing."),
	}
}

// Projection returns hooks for projections.
func (m *Metrics) Projection() projection.Hooks {
	h := m.handlers
	return projection.Hooks{
		Written: func(table string, action document.Action) {
			h.written.WithLabelValues(table, action.String()).Inc()
		},
		Unchanged: func(table string) { h.unchanged.WithLabelValues(table).Inc() },
		Lost: func(rec *sluice.Record, why projection.Loss) {
			h.notShown.WithLabelValues(rec.Table, string(why)).Inc()
		},
		Dropped: func(table, _ string) { h.dropped.WithLabelValues(table).Inc() },
	}
}

// Rollup returns hooks for counts.
func (m *Metrics) Rollup() rollup.Hooks {
	return rollup.Hooks{Dropped: func(_ *sluice.Record, add dynamo.Add) { m.handlers.lost.WithLabelValues(add.Table).Inc() }}
}
