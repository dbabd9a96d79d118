package prom

import "github.com/prometheus/client_golang/prometheus"

func newUnits(reg prometheus.Registerer) *prometheus.CounterVec {
	units := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_write_units_total", Help: "Write units of sinks.",
	}, []string{"table"})
	reg.MustRegister(units)
	return units
}

// Consumed is a hook for a sink that writes to tables.
func (m *Metrics) Consumed(table string, units float64) { m.units.WithLabelValues(table).Add(units) }
