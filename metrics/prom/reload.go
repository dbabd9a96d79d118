package prom

import "github.com/prometheus/client_golang/prometheus"

// reloadMetrics are the series of the configuration of a process.
type reloadMetrics struct {
	reloads  *prometheus.CounterVec
	good, at prometheus.Gauge
}

func newReloadMetrics(f factory) reloadMetrics {
	m := reloadMetrics{
		reloads: f.counter("sluice_config_reloads_total", "Reloads: reloaded, unchanged, failed.", "outcome"),
		good:    f.gauge("sluice_config_last_reload_successful", "0 if the last reload failed.").WithLabelValues(),
		at:      f.gauge("sluice_config_last_reload_success_timestamp_seconds", "When the configuration was loaded.").WithLabelValues(),
	}
	for _, outcome := range []string{"reloaded", "unchanged", "failed"} {
		m.reloads.WithLabelValues(outcome)
	}
	m.good.Set(1)
	m.at.SetToCurrentTime()
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
