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
		rows:     counter("sluice_cascade_deleted_rows_total", "Rows that cascades deleted."),
		messages: counter("sluice_cascade_messages_total", "Messages of cascades, by reason.", "why"),
		sweeps:   counter("sluice_cascade_sweeps_total", "Finished sweeps."),
		swept:    counter("sluice_cascade_swept_rows_total", "Rows that sweeps found after the cascade."),
		stops:    counter("sluice_cascade_stops_total", "Cascades ended because the parent exists again."),
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
