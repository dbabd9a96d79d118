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
		written:   counter("sluice_projection_documents_total", "Documents that projections wrote or deleted (index, delete), or of which a newer one was there, by the table they are made of.", "action"),
		unchanged: counter("sluice_projection_unchanged_total", "Changes of items that do not change their document, so that nothing was written."),
		dropped:   counter("sluice_projection_dropped_fields_total", "Attributes that were left out of a document because another field has their name."),
		notShown:  counter("sluice_projection_lost_total", "Changes that a document does not show, since their version by attribute is not above the document's: not_raised (two changes at one time, or a writer that does not raise it), began_anew (an item that was deleted and made again).", "reason"),
		lost:      counter("sluice_count_additions_lost_total", "Additions to numbers that are lost because the item that has the number is not there, by its table."),
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
