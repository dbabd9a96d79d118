package prom

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestEscalation(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	m.Escalation("page")
	h := m.Escalation("call")
	h.Called("contacted")
	h.Called("contacted")
	h.Called("")
	h.Alarm()
	h.Problem()
	expectSeries(t, reg, `
# HELP sluice_escalation_alarms_total Alarms of the watchdog: an escalation stands still.
# TYPE sluice_escalation_alarms_total counter
sluice_escalation_alarms_total{kind="call"} 1
sluice_escalation_alarms_total{kind="page"} 0
# HELP sluice_escalation_calls_total Calls by outcome: contacted, failed, skipped or again.
# TYPE sluice_escalation_calls_total counter
sluice_escalation_calls_total{kind="call",outcome="again"} 1
sluice_escalation_calls_total{kind="call",outcome="contacted"} 2
# HELP sluice_escalation_problems_total Bad steps and attributes, skipped.
# TYPE sluice_escalation_problems_total counter
sluice_escalation_problems_total{kind="call"} 1
sluice_escalation_problems_total{kind="page"} 0
`, "sluice_escalation_alarms_total", "sluice_escalation_calls_total", "sluice_escalation_problems_total")
}
