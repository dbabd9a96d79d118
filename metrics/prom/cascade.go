package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/handlers/cascade"
)

type cascadeMetrics struct {
	rows, messages, sweeps, swept, stops *prometheus.CounterVec
}

func newCascadeMetrics(reg prometheus.Registerer) cascadeMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"table"}, labels...))
	}
	m := cascadeMetrics{
		rows:     counter("sluice_cascade_deleted_rows_total", "Rows that cascades deleted, by the children's table."),
		messages: counter("sluice_cascade_messages_total", "Messages that cascades sent: to hand over a large one, to continue one whose time was over, or for the sweep at the end.", "why"),
		sweeps:   counter("sluice_cascade_sweeps_total", "Sweeps that ended."),
		swept:    counter("sluice_cascade_swept_rows_total", "Rows that sweeps found: they were written, or shown by an index, after their parent's cascade."),
		stops:    counter("sluice_cascade_stops_total", "Cascades that ended because their parent exists again."),
	}
	reg.MustRegister(m.rows, m.messages, m.sweeps, m.swept, m.stops)
	return m
}

// Cascade returns hooks for cascades.
func (m *Metrics) Cascade() cascade.Hooks {
	return cascade.Hooks{
		Deleted: func(table string, rows int) { m.cascade.rows.WithLabelValues(table).Add(float64(rows)) },
		Sent: func(table string, why cascade.Reason) {
			m.cascade.messages.WithLabelValues(table, string(why)).Inc()
		},
		Swept: func(table string, rows int) {
			m.cascade.sweeps.WithLabelValues(table).Inc()
			m.cascade.swept.WithLabelValues(table).Add(float64(rows))
		},
		Stopped: func(table string) { m.cascade.stops.WithLabelValues(table).Inc() },
	}
}
