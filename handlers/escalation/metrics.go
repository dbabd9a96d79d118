package escalation

import (
	"github.com/sluicehq/sluice/metrics"
)

var (
	calls    = metrics.New(metrics.Metric{Name: "sluice_escalation_calls_total", Help: "Calls by outcome: contacted, failed, skipped or again.", Labels: []string{"kind", "outcome"}})
	alarms   = metrics.New(metrics.Metric{Name: "sluice_escalation_alarms_total", Help: "Alarms of the watchdog: an escalation stands still.", Labels: []string{"kind"}, CloudWatch: "EscalationAlarms", Dimension: "Escalation"})
	problems = metrics.New(metrics.Metric{Name: "sluice_escalation_problems_total", Help: "Bad steps and attributes, skipped.", Labels: []string{"kind"}, CloudWatch: "EscalationProblems", Dimension: "Escalation"})
)

// series are the metrics of one kind of escalation. The zero value drops them.
type series struct {
	calls           *metrics.Series
	alarm, problems func(float64)
}

// newSeries creates alarms and problems with 0, so that the first is an increase.
func newSeries(m metrics.Meter, kind string) series {
	return series{calls.Of(m), alarms.Of(m).Bind(kind), problems.Of(m).Bind(kind)}
}

func once(add func(float64)) {
	if add != nil {
		add(1)
	}
}
