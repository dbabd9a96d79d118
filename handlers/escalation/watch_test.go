package escalation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
)

// losing is a rota that loses every event that lost selects: a sent or received
// message, or a record of a stream. As if it were parked, a lost event has no effect,
// and nobody hears of it.
func losing(t *testing.T, change func(*rota), lost func(what string) bool) (w *rota) {
	w = newRounds(t)
	if change != nil {
		change(w)
	}
	c := w.config()
	send, watch := c.Config.Send, c.Config.Watch.Send
	c.Config.Send = func(ctx context.Context, m sluice.Message) error {
		if lost("sending " + m.Attributes["dedupeKey"].Value) {
			return nil
		}
		return send(ctx, m)
	}
	c.Config.Watch.Send = func(ctx context.Context, m sluice.Message) error {
		if lost("sending watch") {
			return nil
		}
		return watch(ctx, m)
	}
	h := w.handleWith(t, c)
	handle := func(ctx context.Context, rec *sluice.Record) error {
		what := fmt.Sprintf("record of %s %s", rec.Table, rec.EventName)
		if m, ok := rec.Message(); ok {
			what = "message " + m.Attributes["dedupeKey"].Value
		}
		if lost(what) {
			return nil
		}
		return h(ctx, rec)
	}
	for _, e := range append(w.events, event{6 * time.Hour, func(*testing.T) {}}) {
		if err := w.Run(t.Context(), handle, start.Add(e.at)); err != nil || len(w.Parked) > 0 {
			t.Fatal(err, w.Parked)
		}
		e.do(t)
	}
	return w
}

// After the loss of any single event, everybody is called in order, and the page ends.
// If the loss delayed the chain, there was an alarm.
func TestWhateverIsLost(t *testing.T) {
	if localtest.Elsewhere(t) { // TestLossSeeds has the race detector
		return
	}
	for _, tt := range []struct {
		name   string
		change func(*rota)
		calls  string
	}{
		{"one climb", nil, "P1#0 P1#1 P1#2"},
		{"acknowledged, and taken back", takenBack, "P1#0 P1#1 P1#0@1 P1#1@1 P1#2@1"},
		{"the ladder twice", func(w *rota) { w.edit = func(c *ConsumerConfig) { c.Config.Repeat = 1 } }, "P1#0 P1#1 P1#2 P1#3 P1#4 P1#5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, alarmed := 0, 0
			for more := true; more; n++ {
				synctest.Test(t, func(t *testing.T) {
					more = false
					i, what := -1, ""
					w := losing(t, tt.change, func(s string) bool {
						// Without these nobody ever learns of the round; docs/escalation.md
						// says so.
						if s == "record of pages INSERT" || s == "record of pages MODIFY" {
							return false
						}
						if i++; i == n {
							what, more = s, true
						}
						return i == n
					})
					var calls []string
					for _, call := range w.calls {
						calls = append(calls, strings.Fields(call)[1])
					}
					got := strings.Join(calls, " ")
					if got != tt.calls && !(tt.name == "acknowledged, and taken back" && subsequence(calls, tt.calls)) || w.state() != "no_response" {
						t.Errorf("lost %s (%d): calls %s, want %s; in the end the page is %s", what, n, got, tt.calls, w.state())
					}
					for _, a := range w.alarms {
						alarmed++
						if a.Escalation != "P1" || a.Err != nil || a.Due.IsZero() {
							t.Errorf("lost %s: alarm %+v", what, a)
						}
					}
					if strings.Contains(what, "watch") && len(w.alarms) > 0 {
						t.Errorf("lost %s: the chain stood still: %+v", what, w.alarms)
					}
				})
				if t.Failed() {
					return
				}
			}
			if n < 15 || alarmed < 6 {
				t.Errorf("%d points, %d alarms", n, alarmed)
			}
		})
	}
}

// Random order and repetitions, and one loss: the page ends, and nobody is called
// twice for a step.
func TestLossSeeds(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			i, what := uint64(0), ""
			w := losing(t, func(w *rota) {
				w.Rand = rand.New(rand.NewPCG(seed, 3))
				if seed%2 == 1 {
					takenBack(w)
				}
			}, func(s string) bool {
				if strings.HasPrefix(s, "record of pages") {
					return false
				}
				if i++; i == seed {
					what = s
				}
				return i == seed
			})
			called := map[string]bool{}
			for _, call := range w.calls {
				key := strings.Fields(call)[1]
				if called[key] {
					t.Errorf("seed %d, lost %s: calls %q", seed, what, w.calls)
				}
				called[key] = true
			}
			if w.state() != "no_response" || len(w.calls) < 3 {
				t.Errorf("seed %d, lost %s: calls %q; in the end the page is %s", seed, what, w.calls, w.state())
			}
		})
	}
}

// subsequence reports whether calls are those of want. Calls of the acknowledged round
// may be missing, calls of the new round may not.
func subsequence(calls []string, want string) bool {
	round := ""
	for _, call := range calls {
		if strings.HasSuffix(call, "@1") {
			round += call + " "
		}
	}
	return round == "P1#0@1 P1#1@1 P1#2@1 " && strings.Contains(want, "P1#0")
}

// A chain that loses everything raises an alarm in time, and once in a while.
func TestChainIsDown(t *testing.T) {
	for _, down := range []string{"sending P1#", "message P1#0", "message P1#1", "message P1#2"} {
		t.Run(down, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := losing(t, nil, func(what string) bool { return strings.HasPrefix(what, down) })
				if n := len(w.alarms); n < 10 || n > 24 || w.state() != "ringing" {
					t.Fatalf("%d alarms in 6 hours, the page is %s", n, w.state())
				}
				keys := map[string]bool{}
				for _, a := range w.alarms {
					keys[a.DedupeKey] = true
				}
				if len(keys) != 1 {
					t.Errorf("keys %v", keys)
				}
			})
		})
	}
}

// Without any record of an attempt the watchdog takes each step itself, late.
func TestStreamIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := losing(t, nil, func(what string) bool { return what == "record of rings MODIFY" })
		if len(w.alarms) != 2 || w.alarms[0].DedupeKey != "P1#alarm-1" || w.alarms[1].Number != 2 || len(w.calls) != 3 || w.state() != "no_response" {
			t.Errorf("alarms %+v, calls %q, the page is %s", w.alarms, w.calls, w.state())
		}
	})
}

// An expiry that is lost, always, is made by the watchdog.
func TestWatchdogExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := losing(t, nil, func(what string) bool { return strings.HasSuffix(what, "P1#expire") })
		if w.state() != "no_response" || len(w.alarms) > 0 || len(w.calls) != 3 {
			t.Errorf("%s, alarms %+v, calls %q", w.state(), w.alarms, w.calls)
		}
	})
}

// The watchdog of a snoozed page raises no alarm.
func TestWatchdogOfASnooze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := losing(t, func(w *rota) {
			w.edit = named
			w.events = []event{{5 * time.Minute, func(t *testing.T) { w.set(t, "snoozedUntil", "2024-05-01T13:00:00Z") }}}
		}, func(string) bool { return false })
		if len(w.alarms) > 0 || w.state() != "no_response" || len(w.calls) != 3 || !strings.HasPrefix(w.calls[2], "13:00:00") {
			t.Errorf("%s, alarms %+v, calls %q", w.state(), w.alarms, w.calls)
		}
	})
}

// A step that is gone while its message waits is no reason for an alarm: the one
// behind it would have been due before.
func TestWatchdogOfAnEditedLadder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := losing(t, func(w *rota) {
			w.put(t, "people", inTeam("bob", 2, 1200))
			w.put(t, "people", inTeam("cat", 3, 60))
			w.events = []event{{5 * time.Minute, func(t *testing.T) {
				w.World.Write(t.Context(), dynamo.Delete("people", item.Of(item.String("team", "T1"), item.String("person", "bob"))))
			}}}
		}, func(string) bool { return false })
		if want := "10:00:00 P1#0 ann, 10:21:00 P1#2 cat"; strings.Join(w.calls, ", ") != want || len(w.alarms) > 0 || w.state() != "no_response" {
			t.Errorf("calls %q, want %s; alarms %+v, the page is %s", w.calls, want, w.alarms, w.state())
		}
	})
}

// Watchdogs that come twice do not multiply.
func TestWatchdogsDoNotMultiply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := losing(t, func(w *rota) { w.Twice = true }, func(what string) bool { return strings.HasPrefix(what, "sending P1#") })
		if n := len(w.Sent); n > 400 || len(w.alarms) < 10 || len(w.alarms) > 24 {
			t.Errorf("%d messages, %d alarms", n, len(w.alarms))
		}
		for _, a := range w.alarms {
			if a.DedupeKey != "P1#alarm-0" {
				t.Errorf("%+v", a)
			}
		}
	})
	var m moved
	for i := range 2*maxMoved + 1 {
		m.add(fmt.Sprint(i))
	}
	if len(m.new)+len(m.old) > 2*maxMoved || !m.has(fmt.Sprint(2*maxMoved)) || !m.has(fmt.Sprint(maxMoved+1)) {
		t.Errorf("%d and %d are remembered", len(m.new), len(m.old))
	}
}

// A page that is malformed calls nobody, and is an alarm.
func TestWatchdogOfWhatCannotBeRead(t *testing.T) {
	for want, change := range map[string]func(t *testing.T, w *rota){
		`escalation KEY: attribute "opened.at" is missing`: func(t *testing.T, w *rota) { w.set(t, "opened", "x") },
		`escalation KEY: attribute "state" is of type N`:   func(t *testing.T, w *rota) { w.set(t, "state", 7) },
		`attempt KEY: attribute "tried.rank" is missing`: func(t *testing.T, w *rota) {
			w.put(t, "rings", `{"page":{"S":"P1"},"key":{"S":"P1#0"},"n":{"N":"0"},"at":{"S":"2024-05-01T10:00:00Z"}}`)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newRounds(t)
			change(t, w)
			e, err := New(w.config().Config)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Watch(t.Context(), watching(`{"kind":"watch","escalation":"P1","round":0,"number":0,"notBefore":"2024-05-01T10:00:00Z"}`, 1)); err != nil {
				t.Error(err)
			}
			if len(w.alarms) != 1 || !strings.Contains(withoutHashes(fmt.Sprint(w.alarms[0].Err)), want) || w.alarms[0].DedupeKey != "P1#alarm-0" {
				t.Errorf("alarms %+v, want %s", w.alarms, want)
			}
			if len(w.Sent) != 1 || w.Sent[0].Queue != "watch" || !strings.Contains(w.Sent[0].Body, `"notBefore":"2024-05-01T10:30:00Z"`) {
				t.Errorf("sent %+v", w.Sent)
			}
		})
	}
}

// A permanent failure of the watchdog raises an alarm. The watchdog is not parked:
// nobody would watch.
func TestWatchdogIsNotParked(t *testing.T) {
	denied := sluice.Permanent(errors.New("access denied"))
	for _, tt := range []struct {
		name     string
		change   func(t *testing.T, w *rota, c *Config)
		received int
		err      string
		alarms   string
	}{
		{"the ladder", func(_ *testing.T, _ *rota, c *Config) {
			c.Query = func(context.Context, string) ([]sluice.Item, error) { return nil, denied }
		}, 1, "", "reading ladder KEY of escalation KEY: access denied"},
		{"the end", func(t *testing.T, w *rota, c *Config) {
			w.put(t, "pages", strings.Replace(ringing, "10:00:00", "08:00:00", 1))
			w.put(t, "rings", `{"page":{"S":"P1"},"key":{"S":"P1#0"},"n":{"N":"0"},"tried":{"M":{"person":{"S":"zoe"},"rank":{"N":"9"}}},"at":{"S":"2024-05-01T08:00:00Z"}}`)
			c.Fail = func(context.Context, Escalation, string) error { return denied }
		}, 1, "", "failing escalation KEY (no_response): access denied"},
		{"the alarm", func(_ *testing.T, _ *rota, c *Config) {
			c.Query = func(context.Context, string) ([]sluice.Item, error) { return nil, denied }
			c.Watch.Alarm = func(context.Context, Alarm) error { return denied }
		}, 1, "retry: raising the alarm for escalation KEY: access denied", ""},
		{"the alarm, for the third time", func(_ *testing.T, _ *rota, c *Config) {
			c.Query = func(context.Context, string) ([]sluice.Item, error) { return nil, denied }
			c.Watch.Alarm = func(context.Context, Alarm) error { return denied }
		}, 3, "skipped: watchdog sent anew", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRounds(t)
				c := w.config().Config
				tt.change(t, w, &c)
				e, err := New(c)
				if err != nil {
					t.Fatal(err)
				}
				err = e.Watch(t.Context(), watching(`{"kind":"watch","escalation":"P1","round":0,"number":0,"notBefore":"2024-05-01T08:30:00Z"}`, tt.received))
				sent := 1
				if strings.HasPrefix(tt.err, "retry") {
					sent = 0
				}
				var alarms string
				for _, a := range w.alarms {
					alarms += withoutHashes(a.Err.Error())
				}
				if outcome(err) != tt.err || len(w.Sent) != sent || alarms != tt.alarms {
					t.Errorf("%s, sent %+v, alarms %q", outcome(err), w.Sent, alarms)
				}
			})
		})
	}
}

// The watchdog of an older round ends: the new one has its own.
func TestWatchdogOfAnotherRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRounds(t)
		w.set(t, "round", 1)
		e, err := New(w.config().Config)
		if err != nil {
			t.Fatal(err)
		}
		err = e.Watch(t.Context(), watching(`{"kind":"watch","escalation":"P1","round":0,"number":0,"notBefore":"2024-05-01T09:00:00Z"}`, 1))
		if outcome(err) != "skipped: watchdog of another round" || len(w.Sent) > 0 || len(w.alarms) > 0 {
			t.Errorf("%v, sent %+v, alarms %+v", err, w.Sent, w.alarms)
		}
	})
}

func watching(body string, received int) *sluice.Record {
	m := sluice.Message{ID: "w1", Body: body, Received: received}
	return m.Record("arn:aws:sqs:eu-west-1:123456789012:watch")
}

// A watchdog that cannot read goes back to its queue, and after a few receives
// there is a new one, whose receives are none.
func TestWatchdogIsSentAnew(t *testing.T) {
	const body = `{"kind":"watch","escalation":"P1","round":0,"number":0,"notBefore":"2024-05-01T10:00:00Z"}`
	for _, tt := range []struct {
		name     string
		received int
		fails    func(w *rota, c *Config)
		err      string
		sent     int
	}{
		{"first receive", 1, nil, "retry: reading escalation KEY: throttled", 0},
		{"third receive", 3, nil, "skipped: watchdog sent anew", 1},
		{"and it cannot be sent", 3, func(_ *rota, c *Config) {
			c.Watch.Send = func(context.Context, sluice.Message) error { return errors.New("no queue") }
		}, "retry: reading escalation KEY: throttled\nsending KEY: no queue", 0},
		{"the alarm fails", 2, func(w *rota, c *Config) {
			w.ReadFault = nil
			c.Now = func() time.Time { return start.Add(time.Hour) }
			c.Watch.Alarm = func(context.Context, Alarm) error { return errors.New("nobody listens") }
		}, "retry: raising the alarm for escalation KEY: nobody listens", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRounds(t)
				w.ReadFault = func() error { return errors.New("throttled") }
				c := w.config().Config
				if tt.fails != nil {
					tt.fails(w, &c)
				}
				e, err := New(c)
				if err != nil {
					t.Fatal(err)
				}
				if err := e.Watch(t.Context(), watching(body, tt.received)); outcome(err) != tt.err || len(w.Sent) != tt.sent {
					t.Errorf("%v, sent %+v", err, w.Sent)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		e, err := New(newRounds(t).config().Config)
		if err != nil {
			t.Fatal(err)
		}
		for bad, want := range map[string]string{
			`{"kind":"watch"}`: `attribute "escalation" is missing`,
			`{"kind":"watch","escalation":"P1","round":"x","notBefore":"2024-05-01T10:00:00Z"}`: `attribute "round" is of type S`,
			`{"kind":"watch","escalation":"P1","number":-1,"notBefore":"2024-05-01T10:00:00Z"}`: `attribute "number" is -1`,
			`{"kind":"watch","escalation":"P1"}`:                                                `attribute "notBefore" is missing`,
		} {
			if err := e.Watch(t.Context(), watching(bad, 9)); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", bad, err)
			}
		}
	})
}

// A permanent failure at the start comes after the watchdog was sent. Retries of the
// rest do not send the watchdog again.
func TestStartSendsTheWatchdogFirst(t *testing.T) {
	down := errors.New("throttled")
	for _, tt := range []struct {
		name    string
		change  func(*world)
		watched int
		err     string
	}{
		{"good", func(*world) {}, 1, ""},
		{"answered", func(w *world) { w.page = strings.Replace(ringing, "ringing", "answered", 1) }, 0, "skipped: escalation not active"},
		{"bad start", func(w *world) { w.page = strings.Replace(ringing, "2024-05-01T10:00:00Z", "yesterday", 1) }, 1,
			`permanent: escalation KEY: attribute "opened.at" is no time in RFC 3339, such as 2019-12-30T19:32:14Z`},
		{"send refuses for good", func(w *world) { w.sendErr = sluice.Permanent(errors.New("too long")) }, 1, "permanent: sending KEY: too long"},
		{"query fails", func(w *world) { w.queryErr = down }, 1, "retry: reading ladder KEY of escalation KEY: throttled"},
		{"send fails", func(w *world) { w.sendErr = down }, 1, "retry: sending KEY: throttled"},
		{"watchdog fails", func(w *world) { w.watchErr = down }, 1, "retry: sending KEY: throttled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &world{page: ringing, people: []string{person("ann", 1, 0, true)}, now: start}
			tt.change(w)
			s, err := New(w.config())
			if err != nil {
				t.Fatal(err)
			}
			rec := opened()
			rec.Created = start
			err = s.Start(t.Context(), rec)
			if outcome(err) != tt.err || len(w.watched) != tt.watched {
				t.Fatalf("%v, want %s; %d watchdogs", err, tt.err, len(w.watched))
			}
			if tt.watched > 0 && w.watchErr == nil {
				if m := w.watched[0]; m.Delay == 0 || m.Attributes["dedupeKey"].Value != "P1#watch/2024-05-01T10:01:00Z" || !strings.Contains(m.Body, `"round":0,"number":0`) {
					t.Errorf("watchdog %+v", m)
				}
			}
			if w.watchErr != nil && len(w.sent) > 0 {
				t.Error("the step went first")
			}
			var rest *sluice.Remaining
			if !errors.As(err, &rest) {
				return
			}
			w.queryErr, w.sendErr, w.sent = nil, nil, nil
			if err := rest.Rest(t.Context(), rec); err != nil || len(w.sent) != 1 || len(w.watched) != 1 {
				t.Errorf("the rest: %v, %d sent, %d watchdogs", err, len(w.sent), len(w.watched))
			}
		})
	}
}

// watchAfter must be longer than a consumer may take.
func TestWatchAfter(t *testing.T) {
	c := newConfig(t)
	c.Config.Watch.After = 12 * time.Minute
	if _, err := NewConsumer(c); err == nil || !strings.Contains(err.Error(), "Watch.After is 12m0s, want more than GiveUpAfter and Lease together, 12m0s") {
		t.Error(err)
	}
	c.Config.Watch = Watchdog{After: -1}
	if _, err := New(c.Config); err == nil || !strings.Contains(err.Error(), "Watch.Kind is missing") || !strings.Contains(err.Error(), "Watch.Alarm is missing") || !strings.Contains(err.Error(), "Watch.After is -1ns") {
		t.Error(err)
	}
}
