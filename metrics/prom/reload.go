package prom

import "github.com/prometheus/client_golang/prometheus"

// reloadMetrics are the series of the configuration of a process.
type reloadMetrics struct {
	reloads  *prometheus.CounterVec
	good, at prometheus.Gauge
}

func newReloadMetrics(reg prometheus.Registerer) reloadMetrics {
	m := reloadMetrics{
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_config_reloads_total",
			Help: "Reloads: reloaded, unchanged, failed.",
		}, []string{"outcome"}),
		good: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sluice_config_last_reload_successful",
			Help: "0 if the last reload failed.",
		}),
		at: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sluice_config_last_reload_success_timestamp_seconds",
			Help: "When the configuration was loaded.",
		}),
	}
	for _, outcome := range []string{"reloaded", "unchanged", "failed"} {
		m.reloads.WithLabelValues(outcome)
	}
	m.good.Set(1)
	m.at.SetToCurrentTime()
	reg.MustRegister(m.reloads, m.good, m.at)
	return m
}

// Reloaded notes a reload of the configuration: reloaded, unchanged or failed.
func (m *Metrics) Reloaded(outcome string) {
	m.reloads.reloads.WithLabelValues(outcome).Inc()
	m.reloads.good.Set(oneIf(outcome != "failed"))
	if outcome == "reloaded" {
		m.reloads.at.SetToCurrentTime()
	}
}
