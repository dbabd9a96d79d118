package escalation

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// When the watchdog looks next, and when it raises an alarm. Ann is due at once, bob
// a minute after her.
func TestWatchdogLooks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		made   bool   // ann was called at 10:00
		number int    // that the watchdog knew of
		from   string // when it was due itself
		now    string
		next   string // when its successor is due
		alarm  bool
	}{
		{"a minute after the step is due", false, 0, "10:00:00", "10:00:30", "10:01:00", false},
		{"then, when the step is overdue", false, 0, "10:01:00", "10:01:00", "10:15:00", false},
		{"just before", false, 0, "10:14:00", "10:14:59", "10:15:00", false},
		{"overdue", false, 0, "10:15:00", "10:15:00", "10:45:00", true},
		{"the next step", true, 1, "10:01:00", "10:01:30", "10:02:00", false},
		{"the next step, overdue", true, 1, "10:15:00", "10:16:00", "10:45:00", true},
		{"a step that it sees for the first time has a whole period", true, 0, "10:15:00", "10:20:00", "10:30:00", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRounds(t)
				if tt.made {
					w.put(t, "rings", `{"page":{"S":"P1"},"key":{"S":"P1#0"},"n":{"N":"0"},"tried":{"M":{"person":{"S":"ann"},"rank":{"N":"1"}}},"at":{"S":"2024-05-01T10:00:00Z"}}`)
				}
				c := w.config().Config
				c.Now = func() time.Time {
					now, err := time.Parse(time.DateTime, "2024-05-01 "+tt.now)
					if err != nil {
						t.Fatal(err)
					}
					return now
				}
				e, err := New(c)
				if err != nil {
					t.Fatal(err)
				}
				body := fmt.Sprintf(`{"kind":"watch","escalation":"P1","round":0,"number":%d,"notBefore":"2024-05-01T%sZ"}`, tt.number, tt.from)
				if err := e.Watch(t.Context(), watching(body, 1)); err != nil {
					t.Fatal(err)
				}
				watch := w.Sent[len(w.Sent)-1]
				if want := `"notBefore":"2024-05-01T` + tt.next + `Z"`; watch.Queue != "watch" || !strings.Contains(watch.Body, want) || tt.alarm != (len(w.alarms) == 1) || tt.alarm != (len(w.sent()) == 1) {
					t.Errorf("sent %+v, want %s; alarms %+v", w.Sent, want, w.alarms)
				}
			})
		})
	}
}
