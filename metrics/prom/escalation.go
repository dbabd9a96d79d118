package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/handlers/escalation"
)

type escalationMetrics struct {
	calls, alarms, problems *prometheus.CounterVec
}

func newEscalationMetrics(reg prometheus.Registerer) escalationMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"kind"}, labels...))
	}
	m := escalationMetrics{
		calls:    counter("sluice_escalation_calls_total", "Calls by outcome: contacted, failed, skipped or again.", "outcome"),
		alarms:   counter("sluice_escalation_alarms_total", "Alarms of the watchdog: an escalation stands still."),
		problems: counter("sluice_escalation_problems_total", "Bad steps and attributes, skipped."),
	}
	reg.MustRegister(m.calls, m.alarms, m.problems)
	return m
}

// Escalation returns hooks for escalations of a kind.
func (m *Metrics) Escalation(kind string) escalation.Hooks {
	// They are there from the start, so that the first alarm is an increase.
	alarms, problems := m.escalation.alarms.WithLabelValues(kind), m.escalation.problems.WithLabelValues(kind)
	return escalation.Hooks{
		Called: func(outcome string) {
			if outcome == "" {
				outcome = "again"
			}
			m.escalation.calls.WithLabelValues(kind, outcome).Inc()
		},
		Alarm:   alarms.Inc,
		Problem: problems.Inc,
	}
}
