package escalation

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice/internal/tally"
)

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counts tally.Tally
		w := losing(t, func(w *rota) {
			w.put(t, "people", strings.Replace(inTeam("bad", 2, 7), `"7"`, `"30.5"`, 1))
			w.edit = func(c *ConsumerConfig) { c.Config.Metrics, c.Config.Kind = &counts, "ring" }
		}, func(what string) bool { return what == "record of rings MODIFY" })
		calls, alarms, problems := counts.By("sluice_escalation_calls_total"), counts.By("sluice_escalation_alarms_total")["ring"], counts.By("sluice_escalation_problems_total")["ring"]
		if !maps.Equal(calls, map[string]int{"ring,contacted": 3}) || alarms != len(w.alarms) || alarms == 0 || problems == 0 {
			t.Errorf("calls %v, %d alarms, %d problems", calls, alarms, problems)
		}
	})
}
