package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
)

var errNever = sluice.Permanent(errors.New("never"))

func TestPermanentIsParkedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.stub.send("jobs", body(1), `no JSON`, `{"kind":"unknown"}`, body(2))
		letters := new(box)
		w.stub.deleted = func(m *stubMessage) { // the dead letter is there before
			if m.body != body(2) && !slices.Contains(letters.ids(), m.id) {
				t.Errorf("%s is deleted and not parked", m.id)
			}
		}
		w.start(Options{DeadLetter: letters}, func(_ context.Context, rec *sluice.Record) error {
			if nOf(rec) == "1" {
				return errNever
			}
			return nil
		})
		pass(time.Second)
		w.end()
		w.expectLeft("jobs")
		w.expectEnds(map[End]int{EndParked: 3, EndSettled: 1})
		if got := letters.ids(); !slices.Equal(got, []string{"jobs-001", "jobs-002", "jobs-003"}) {
			t.Errorf("parked %q", got)
		}
		if n := strings.Count(w.logged(), "message parked as a dead letter"); n != 3 {
			t.Errorf("%d of 3 are told:\n%s", n, w.logged())
		}
	})
}

func TestPermanentWithoutDeadLetters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.stub.send("jobs", body(1))
		w.start(Options{}, func(context.Context, *sluice.Record) error { return errNever })
		pass(59 * time.Minute)
		w.end()
		if n := len(w.calls()); n != 4 { // each quarter of an hour
			t.Errorf("%d calls in an hour", n)
		}
		w.expectLeft("jobs", "jobs-001")
		for _, want := range []string{"failed for good and is not parked", "is lost when the queue's retention is over"} {
			if !strings.Contains(w.logged(), want) {
				t.Errorf("log does not say %q:\n%s", want, w.logged())
			}
		}
	})
}

func TestDeadLettersThatFail(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.stub.send("jobs", body(1))
		letters := &box{err: errDown}
		w.start(Options{DeadLetter: letters}, func(context.Context, *sluice.Record) error { return errNever })
		pass(time.Minute)
		w.expectLeft("jobs", "jobs-001")
		letters.mu.Lock()
		letters.err = nil
		letters.mu.Unlock()
		pass(10 * time.Minute)
		w.end()
		w.expectLeft("jobs")
		if got := letters.ids(); len(got) != 1 {
			t.Errorf("parked %q", got)
		}
	})
}

// A message that fails while its route succeeds for others is poison after
// MaxReceives.
func TestPoison(t *testing.T) {
	for _, c := range []struct{ receives, attempts, want int }{{0, 0, 16}, {5, 0, 5}, {0, 3, 3}} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			letters := new(box)
			calls := 0
			r := routesOf(func(_ context.Context, rec *sluice.Record) error {
				if nOf(rec) == "bad" {
					calls++
					return errDown
				}
				return nil
			}, "job")
			r.list[0].Attempts = c.attempts
			var results []flow.Result
			hooks := flow.Hooks{Handled: func(_ context.Context, rec *sluice.Record, _ *sluice.Route, r flow.Result, _ time.Duration, _ error) {
				if nOf(rec) == "bad" {
					results = append(results, r)
				}
			}}
			w.stub.send("jobs", body("bad"))
			w.startRoutes(Options{DeadLetter: letters, MaxReceives: c.receives, FlowHooks: hooks}, r)
			for i := range 8 * 3600 { // the others
				if w.stub.send("jobs", body(i)); i > 60 && len(letters.ids()) > 0 {
					break
				}
				pass(every(i))
			}
			pass(time.Minute)
			w.end()
			w.expectLeft("jobs")
			if f := letters.parked["jobs-001"]; calls != c.want || f.Attempts != c.want || f.Route != "job" || !errors.Is(f.Last, errDown) || f.FirstAt.IsZero() || !f.FirstAt.Before(f.LastAt) {
				t.Errorf("%d calls, parked %+v, want %d", calls, f, c.want)
			}
			if n := len(results); n != c.want || results[0] != flow.Retried || results[n-1] != flow.Parked {
				t.Errorf("results %v", results)
			}
		})
	}
}

// every is how long after the message i the next one comes that succeeds: more
// often than another one can fail by then.
func every(i int) time.Duration {
	if i < 100 {
		return 900 * time.Millisecond
	}
	return 9 * time.Second
}

// RetryAfter and refusals for load are never poison, however often they occur and
// whatever succeeds beside them. A plain failure after them is the message's first.
func TestAWishIsNoPoison(t *testing.T) {
	for name, err := range map[string]error{
		"later":            sluice.RetryAfter(10*time.Second, errDown),
		"overloaded":       sluice.Overloaded(errDown),
		"overloaded,later": sluice.RetryAfter(10*time.Second, sluice.Overloaded(errDown)),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				letters := new(box)
				calls := 0
				w.stub.send("jobs", body("asks"))
				w.start(Options{DeadLetter: letters, MaxReceives: 3}, func(_ context.Context, rec *sluice.Record) error {
					if nOf(rec) != "asks" {
						return nil
					}
					calls++
					switch {
					case calls < 20:
						return err
					case calls == 20:
						return errDown
					}
					return nil
				})
				for i := 0; i < 8*3600 && calls < 21; i++ {
					w.stub.send("jobs", body(i))
					pass(every(i))
				}
				pass(time.Minute)
				w.end()
				w.expectLeft("jobs")
				if got := letters.ids(); calls != 21 || len(got) != 0 {
					t.Errorf("%d calls, parked %q", calls, got)
				}
			})
		})
	}
}

// A message's failures on one route do not count for another route, which may fail for
// all.
func TestFailuresOfTwoRoutes(t *testing.T) {
	j := newJudge(time.Hour)
	fail := func(route, id string, err error) (int, error) {
		var f sluice.Failure
		counted, _ := j.failed(route, id, err, &f)
		return counted, f.First
	}
	for range 3 {
		j.succeeded("a")
		fail("a", "other", errDown)
	}
	j.succeeded("b")
	fail("b", "other", errDown)
	for range 4 { // b fails for all, and a now and then
		if counted, first := fail("b", "m", errDown); counted != 0 || first != errDown {
			t.Errorf("b: counted %d, first %v", counted, first)
		}
		if counted, first := fail("a", "m", errNever); counted != 0 || first != errNever {
			t.Errorf("a: counted %d, first %v", counted, first)
		}
	}
}

// When a route fails for all, nothing is parked, few messages are received, and
// the consumer is not ready; then all of them are handled.
func TestOutageIsNoPoison(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		letters := new(box)
		for i := range 100 {
			w.stub.send("jobs", body(i))
		}
		var up atomic.Bool
		w.start(Options{DeadLetter: letters, MaxReceives: 3}, func(context.Context, *sluice.Record) error {
			if up.Load() {
				return nil
			}
			return errDown
		})
		pass(time.Minute)
		if h := w.c.NotReady(); len(h) != 1 || !strings.Contains(h[0], `route "job" fails for every message since`) {
			t.Errorf("health %q", h)
		}
		pass(3 * time.Hour)
		if n := len(w.calls()); n > 64+3*3600/15+30 {
			t.Errorf("%d messages were received in an outage of 3 hours", n)
		}
		up.Store(true)
		pass(2 * time.Hour)
		if h := w.c.NotReady(); len(h) > 0 {
			t.Errorf("health %q", h)
		}
		w.end()
		w.expectLeft("jobs")
		if got := letters.ids(); len(got) > 0 {
			t.Errorf("parked %q", got)
		}
	})
}

// A message that failed for most of the queue's retention is parked: otherwise the
// queue drops it. That holds in an outage, and for longer delays.
func TestOldIsParked(t *testing.T) {
	for _, err := range []error{errDown, sluice.RetryAfter(11*time.Hour, errDown)} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			q := w.stub.queues["jobs"]
			q.retention, q.attributes["MessageRetentionPeriod"] = 10*time.Hour, "36000"
			letters := new(box)
			w.stub.send("jobs", body(1))
			w.start(Options{DeadLetter: letters}, func(context.Context, *sluice.Record) error { return err })
			pass(8*time.Hour - time.Second)
			if got := letters.ids(); len(got) != 0 {
				t.Errorf("%v: parked %q too early", err, got)
			}
			pass(16 * time.Minute)
			w.end()
			w.expectLeft("jobs")
			if got := letters.ids(); len(got) != 1 {
				t.Errorf("%v: parked %q", err, got)
			}
		})
	}
}

// After a failure nothing of its group overtakes, and other groups go on.
func TestGroupsKeepTheirOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "jobs.fifo")
		for i := range 9 {
			g := string(rune('a' + i%3))
			w.stub.send("jobs.fifo", g+"/"+body(fmt.Sprint(g, i)))
		}
		fails := 3
		w.start(Options{}, func(_ context.Context, rec *sluice.Record) error {
			if nOf(rec) == "b4" && fails > 0 {
				fails--
				return sluice.RetryAfter(time.Minute, errDown)
			}
			return nil
		})
		pass(time.Second)
		w.expectLeft("jobs.fifo", "jobs.fifo-005", "jobs.fifo-008")
		if a, b := w.stub.find("jobs.fifo-005").visible, w.stub.find("jobs.fifo-008").visible; a.After(b) {
			t.Errorf("the failed one is visible %v, and later than the next one of its group", a.Sub(b))
		}
		pass(10 * time.Minute)
		w.end()
		w.expectLeft("jobs.fifo")
		got := map[byte][]string{}
		for _, n := range w.calls() {
			got[n[0]] = append(got[n[0]], n)
		}
		for g, want := range map[byte]string{'a': "a0 a3 a6", 'b': "b1 b4 b4 b4 b4 b7", 'c': "c2 c5 c8"} {
			if s := strings.Join(got[g], " "); s != want {
				t.Errorf("group %c: %s, want %s", g, s, want)
			}
		}
		w.expectEnds(map[End]int{EndSettled: 9, EndReturned: 3, EndUnused: 3})
	})
}

// If a deletion fails for good, the message comes back. Later messages of its group
// must wait for that.
func TestGroupWaitsForItsDeletes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "jobs.fifo")
		w.stub.send("jobs.fifo", "a/"+body(1), "a/"+body(2), "a/"+body(3))
		n := 0
		w.stub.fault = func(call, _ string) *fault {
			if call == "DeleteMessageBatch" {
				if n++; n == 1 {
					return &fault{entry: map[int]string{0: "sender:InvalidParameterValue"}}
				}
			}
			return nil
		}
		w.start(Options{}, func(context.Context, *sluice.Record) error { return nil })
		pass(5 * time.Minute)
		w.end()
		w.expectLeft("jobs.fifo")
		if got := strings.Join(w.calls(), " "); got != "1 1 2 3" {
			t.Errorf("handled %s", got)
		}
	})
}

// A standard queue's groups are for fairness and have no order.
func TestStandardGroupsRunTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.stub.send("jobs", body(1), body(2), body(3))
		for _, m := range w.stub.queues["jobs"].ms {
			m.group = "g"
		}
		begin := time.Now()
		w.start(Options{}, func(context.Context, *sluice.Record) error { time.Sleep(time.Minute); return nil })
		pass(61 * time.Second)
		w.end()
		for _, at := range w.times {
			if at.Sub(begin) > time.Second {
				t.Errorf("started after %v", at.Sub(begin))
			}
		}
		w.expectLeft("jobs")
	})
}

// several sends every message to all of its routes, in order.
type several []*sluice.Route

func (r several) Routes() []*sluice.Route { return r }

func (r several) Match(dst []*sluice.Route, _ *sluice.Record) ([]*sluice.Route, error) {
	return append(dst, r...), nil
}

// Routes behind a failing route have not run: the parked letter is for all of them.
func TestPoisonOfSeveralRoutes(t *testing.T) {
	for _, c := range []struct {
		fails int    // the route that does
		want  string // that is parked; "" is all
	}{{0, ""}, {1, ""}, {2, "c"}} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			ran := map[string]bool{} // the bad one
			var r several
			for i, name := range []string{"a", "b", "c"} {
				r = append(r, &sluice.Route{Name: name, Index: i, Handler: func(_ context.Context, rec *sluice.Record) error {
					if nOf(rec) != "bad" {
						return nil
					}
					if ran[name] = true; i == c.fails {
						return errDown
					}
					return nil
				}})
			}
			letters := new(box)
			w.stub.send("jobs", body("bad"))
			w.startRoutes(Options{DeadLetter: letters, MaxReceives: 3}, r)
			for i := 0; len(letters.ids()) == 0 && i < 600; i++ {
				w.stub.send("jobs", body(i))
				pass(900 * time.Millisecond)
			}
			pass(time.Minute)
			w.end()
			w.expectLeft("jobs")
			f, ok := letters.parked["jobs-001"]
			if !ok || f.Route != c.want || !errors.Is(f.Last, errDown) || !strings.Contains(f.Last.Error(), r[c.fails].Name) && c.want == "" {
				t.Errorf("route %d fails, %v have run: parked for %q: %v, want %q", c.fails, ran, f.Route, f.Last, c.want)
			}
		})
	}
}

// Failures of the dead-letter store are reported as such. A letter parked afterwards
// has the message's error, not the store's.
func TestDeadLettersThatRecover(t *testing.T) {
	for _, c := range []struct{ body, want string }{{body(1), errNever.Error()}, {"no JSON", "no JSON object"}} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			q := w.stub.queues["jobs"]
			q.retention, q.attributes["MessageRetentionPeriod"] = time.Hour, "3600"
			w.stub.send("jobs", c.body)
			q.ms[0].sent = q.ms[0].sent.Add(-50 * time.Minute) // too old: parked whatever fails
			letters := &reluctant{fails: 1}
			refused := 0
			hooks := flow.Hooks{ParkFailed: func(_ *sluice.Record, _ *sluice.Route, err error) {
				if refused++; !errors.Is(err, errFull) {
					t.Errorf("refused with %v", err)
				}
			}}
			w.start(Options{DeadLetter: letters, FlowHooks: hooks}, func(context.Context, *sluice.Record) error { return errNever })
			pass(time.Minute)
			w.end()
			w.expectLeft("jobs")
			if f := letters.parked["jobs-001"]; f.Last == nil || !strings.Contains(f.Last.Error(), c.want) || errors.Is(f.Last, errFull) || f.First == nil {
				t.Errorf("parked %+v, want %q", f, c.want)
			}
			if refused != 1 {
				t.Errorf("%d refusals are told", refused)
			}
		})
	}
}

var errFull = errors.New("disk full")

// reluctant refuses at first.
type reluctant struct {
	box
	fails int
}

func (r *reluctant) Park(ctx context.Context, rec *sluice.Record, f sluice.Failure) error {
	if r.fails--; r.fails >= 0 {
		return errFull
	}
	return r.box.Park(ctx, rec, f)
}
