package escalation

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		alarms, problems := 0, 0
		w := losing(t, func(w *rota) {
			w.put(t, "people", strings.Replace(inTeam("bad", 2, 7), `"7"`, `"30.5"`, 1))
			w.edit = func(c *ConsumerConfig) {
				c.Config.Hooks = Hooks{
					Called:  func(outcome string) { calls = append(calls, outcome) },
					Alarm:   func() { alarms++ },
					Problem: func() { problems++ },
				}
			}
		}, func(what string) bool { return what == "record of rings MODIFY" })
		if got := fmt.Sprint(calls); got != "[contacted contacted contacted]" || alarms != len(w.alarms) || alarms == 0 || problems == 0 {
			t.Errorf("calls %s, %d alarms, %d problems", got, alarms, problems)
		}
	})
}
