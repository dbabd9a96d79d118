package escalation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// If nobody could be called, the reason is nobody_called, not no_response, and there is
// an alarm. Expiry and watchdog end the escalation in the same way.
func TestNobodyCalled(t *testing.T) {
	refused := sluice.Permanent(errors.New("no URL"))
	for _, tt := range []struct {
		name    string
		contact map[string]error // by the step; of others it is nil
		expiry  bool             // its message arrives
		state   string
		alarms  int
	}{
		{"all answer", nil, true, "no_response", 0},
		{"one was called", map[string]error{"ann": refused, "cat": refused}, true, "no_response", 0},
		{"none", map[string]error{"ann": refused, "bob": refused, "cat": refused}, true, "nobody_called", 1},
		{"none, one was passed over", map[string]error{"ann": refused, "bob": sluice.Skip("asleep"), "cat": refused}, true, "nobody_called", 1},
		{"none, and the expiry is lost", map[string]error{"ann": refused, "bob": refused, "cat": refused}, false, "nobody_called", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := losing(t, func(w *rota) {
					w.contact = func(_ context.Context, t Try) error { return tt.contact[t.Step.ID] }
				}, func(what string) bool { return !tt.expiry && strings.HasSuffix(what, "P1#expire") })
				if w.state() != tt.state || len(w.alarms) != tt.alarms {
					t.Errorf("the page is %s, want %s; alarms %+v", w.state(), tt.state, w.alarms)
				}
				for _, a := range w.alarms {
					if !a.Ended || !errors.Is(a.Err, errNobody) || a.DedupeKey != "P1#alarm-end" || a.Number != 3 {
						t.Errorf("alarm %+v", a)
					}
				}
			})
		})
	}
}

// An escalation does not end before its alarm was raised: a crash or an outage in
// between would lose it.
func TestNobodyCalledAlarmsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRounds(t)
		w.put(t, "rings", `{"page":{"S":"P1"},"key":{"S":"P1#0"},"n":{"N":"0"},"outcome":{"S":"failed"},"at":{"S":"2024-05-01T10:00:00Z"}}`)
		c := w.config()
		c.Config.Watch.Alarm = func(context.Context, Alarm) error { return errors.New("nobody listens") }
		s, err := NewConsumer(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Expire(t.Context(), ring()); outcome(err) != "retry: raising the alarm for escalation KEY: nobody listens" || w.state() != "ringing" {
			t.Errorf("%v, the page is %s", err, w.state())
		}
	})
}

// The expiry or the watchdog of a deleted escalation does not end a new one with the
// same id whose INSERT still waits: it begins a round.
func TestExpiryOfADeletedEscalation(t *testing.T) {
	for name, insert := range map[string]bool{"INSERT handled later": true, "INSERT lost": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var late []sluice.Record
				w := history(t, func(w *rota, kept *[]sluice.Record) {
					w.hold = func(rec *sluice.Record) bool { // the second INSERT comes late
						return len(*kept) == 2 && rec.Table == "pages" && rec.EventName == sluice.Insert && w.Now().Before(start.Add(time.Hour))
					}
					w.held = func(rec *sluice.Record) { late = append(late, *rec.Clone()) }
					// Between the last step and the end.
					w.events = []event{{22 * time.Minute, w.remove}, {22*time.Minute + 10*time.Second, func(t *testing.T) {
						w.put(t, "pages", strings.Replace(ringing, "10:00:00", "10:22:10", 1))
					}}, {time.Hour, func(*testing.T) {
						if insert {
							w.Replay(late...)
						}
					}}}
				})
				want := "10:00:00 P1#0 ann, 10:01:00 P1#1 bob, 10:21:00 P1#2 cat, 10:23:00 P1#0@1 ann, 10:24:00 P1#1@1 bob, 10:44:00 P1#2@1 cat"
				if got := strings.Join(w.calls, ", "); got != want || len(w.alarms) > 0 || len(late) != 1 {
					t.Errorf("calls %s\nwant  %s\nalarms %+v, %d late", got, want, w.alarms, len(late))
				}
			})
		})
	}
}

// Each record that skips a bad step reports it once. The watchdog does not. A ladder
// without a good step is reported by the error alone.
func TestBadStepsAreToldOnce(t *testing.T) {
	for _, tt := range []struct {
		name  string
		steps []string
		told  int
	}{
		{"one bad step", []string{strings.Replace(inTeam("bob", 2, 60), `"60"`, `"1.5"`, 1)}, 3}, // by Start, and after two attempts
		{"no good step", []string{
			strings.Replace(inTeam("ann", 1, 0), `"0"`, `"1.5"`, 1), strings.Replace(inTeam("bob", 2, 60), `"60"`, `"1.5"`, 1), strings.Replace(inTeam("cat", 3, 1200), `"1200"`, `"1.5"`, 1),
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []string
				w := newRounds(t)
				for _, step := range tt.steps {
					w.put(t, "people", step)
				}
				w.edit = func(c *ConsumerConfig) {
					c.Config.Problem = func(_ context.Context, _ Escalation, err error) { told = append(told, err.Error()) }
				}
				h := w.handleWith(t, w.config())
				if err := w.Run(t.Context(), h, start.Add(6*time.Hour)); err != nil {
					t.Fatal(err)
				}
				if len(told) != tt.told {
					t.Errorf("told %q", told)
				}
			})
		})
	}
}

// A ladder whose steps all turn bad while nobody was called yet ends with one alarm.
func TestWatchdogEndsABadLadder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRounds(t)
		for _, p := range []string{"ann", "bob", "cat"} {
			w.put(t, "people", strings.Replace(inTeam(p, 1, 7), `"7"`, `"1.5"`, 1))
		}
		e, err := New(w.config().Config)
		if err != nil {
			t.Fatal(err)
		}
		err = e.Watch(t.Context(), watching(`{"kind":"watch","escalation":"P1","round":0,"number":0,"notBefore":"2024-05-01T09:00:00Z"}`, 1))
		if err != nil || len(w.alarms) != 1 || !w.alarms[0].Ended || !strings.Contains(fmt.Sprint(w.alarms[0].Err), "item 1 of 4: step") || w.state() != "bad_steps" || len(w.Sent) > 0 {
			t.Errorf("%v, alarms %+v, sent %+v, the page is %s", err, w.alarms, w.Sent, w.state())
		}
	})
}
