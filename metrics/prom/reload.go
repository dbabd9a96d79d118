package prom

// Reloaded notes a reload of the configuration: reloaded, unchanged or failed.
func (m *Metrics) Reloaded(outcome string) { m.reloaded(outcome) }

func newReloaded(f factory) func(outcome string) {
	reloads := f.counter("sluice_config_reloads_total", "Reloads: reloaded, unchanged, failed.", "outcome")
	good := f.gauge("sluice_config_last_reload_successful", "0 if the last reload failed.").WithLabelValues()
	at := f.gauge("sluice_config_last_reload_success_timestamp_seconds", "When the configuration was loaded.").WithLabelValues()
	for _, outcome := range []string{"reloaded", "unchanged", "failed"} {
		reloads.WithLabelValues(outcome)
	}
	good.Set(1)
	at.SetToCurrentTime()
	return func(outcome string) {
		reloads.WithLabelValues(outcome).Inc()
		good.Set(oneIf(outcome != "failed"))
		if outcome == "reloaded" {
			at.SetToCurrentTime()
		}
	}
}
