package flow

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// Parked on demand is what failed with a plain error, not what was refused for
// load, asked to come back, or was never called.
func TestParkOfARoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &letters{}
		answers := map[string]error{
			"plain": errDown, "never": errDown, "load": sluice.Overloaded(errDown), "wish": sluice.RetryAfter(time.Hour, errDown),
		}
		m := routes(func(_ context.Context, r *sluice.Record) error { return answers[keyOf(r)] })
		m.routes[0].Rate, m.routes[0].Burst = 0.1, 3
		f := Open(t.Context(), m, Options{Logger: quiet, DeadLetter: d, Concurrency: 1})
		mustSubmit(t, f, recs("plain", "load", "wish", "never", "plain")...)
		synctest.Wait()
		for _, dryRun := range []bool{true, true, false} {
			for route, want := range map[string]int{"a": 1, "b": 0} {
				if n, pending := f.Park(route, dryRun); n != want || pending != 0 {
					t.Errorf("%s, dry run %v: %d parked, %d pending, want %d", route, dryRun, n, pending, want)
				}
			}
			if synctest.Wait(); dryRun && len(d.recs) > 0 {
				t.Errorf("a dry run parked %d", len(d.recs))
			}
		}
		d.want(t, "a 1 1") // the second of its item is called, not parked
		clear(answers)
		mustClose(t, f, 5)
		d.want(t, "a 1 1")
	})
}

// A record whose call runs is parked if that fails, too, and not if it succeeds.
func TestParkWhileItRuns(t *testing.T) {
	for _, second := range []error{errDown, nil, sluice.Overloaded(errDown)} {
		t.Run(fmt.Sprint(second), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &letters{}
				var calls atomic.Int32
				slow := func(context.Context, *sluice.Record) error {
					switch calls.Add(1) {
					case 1:
						return errDown
					case 2:
						time.Sleep(time.Minute)
						return second
					}
					return nil
				}
				// Route b keeps failing beside it: its retries run while a waits.
				f := Open(t.Context(), routes(slow, script(new(log), "b", errDown, errDown, errDown)), Options{Logger: quiet, DeadLetter: d})
				mustSubmit(t, f, rec("x", 1))
				for calls.Load() < 2 {
					time.Sleep(time.Millisecond)
				}
				if n, pending := f.Park("a", false); n != 0 || pending != 1 {
					t.Errorf("%d parked, %d pending, want 1 pending", n, pending)
				}
				mustClose(t, f, 1)
				if want := second == errDown; (len(d.recs) == 1) != want || calls.Load() == 3 != (outcomes.IsOverloaded(second)) {
					t.Errorf("%d parked after %d calls", len(d.recs), calls.Load())
				}
			})
		})
	}
}

// Two routes of a record fail. One is parked on demand while a worker has the
// record for the other.
func TestParkBesideARunningRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &letters{}
		back := make(chan struct{}, 1)
		hooks := Hooks{Handled: func(_ context.Context, _ *sluice.Record, route *sluice.Route, r Result, _ time.Duration, _ error) {
			if route.Name == "b" && r == Done {
				back <- struct{}{}
				for range 100 { // for the race detector: Park runs now
					runtime.Gosched()
				}
			}
		}}
		f := Open(t.Context(), routes(bad(errDown), script(new(log), "b", errDown)), Options{Logger: quiet, DeadLetter: d, Hooks: hooks})
		mustSubmit(t, f, rec("bad", 1))
		<-back
		if n, pending := f.Park("a", false); n != 1 || pending != 0 {
			t.Errorf("%d parked, %d pending, want 1 parked", n, pending)
		}
		mustClose(t, f, 1)
		if len(d.recs) != 1 || d.failures[0].Route != "a" {
			t.Errorf("parked %+v", d.failures)
		}
	})
}

// What somebody has parked is no news to them: it does not count towards the
// readiness. What fails for good beside it does.
func TestParkedByHandIsNoTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const failing = parkedAtMost + 1
		m := routes(func(_ context.Context, r *sluice.Record) error {
			if keyOf(r) == "permanent" {
				return sluice.Permanent(errDown)
			}
			return errDown
		})
		d, g := &letters{}, NewGroup(m)
		f := Open(t.Context(), m, Options{Logger: quiet, DeadLetter: d, Group: g})
		for i := range failing {
			mustSubmit(t, f, rec(fmt.Sprint(i), i+1))
		}
		mustSubmit(t, f, rec("permanent", failing+1))
		synctest.Wait()
		if n, pending := f.Park("a", false); n != failing || pending != 0 {
			t.Errorf("%d parked, %d pending", n, pending)
		}
		mustClose(t, f, failing+1)
		if s := g.States()[0]; s.Parked != 1 || s.Trouble() != "" || len(d.all()) != failing+1 {
			t.Errorf("%d dead letters, state %+v: %s", len(d.all()), s, s.Trouble())
		}
	})
}

// A route works again when a call has succeeded. Where all that failed was parked
// by hand, the log says no more than that nothing waits.
func TestTheEndOfAnOutageInTheLog(t *testing.T) {
	const none, works = `msg="nothing waits for the route any more: no call has succeeded meanwhile" route=a`, `msg="route works again" route=a`
	for _, mended := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			var down atomic.Bool
			down.Store(true)
			f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error {
				if down.Load() {
					return errDown
				}
				return nil
			}), Options{DeadLetter: &letters{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			for i := range 10 {
				mustSubmit(t, f, rec(fmt.Sprint(i), i+1))
				time.Sleep(time.Second)
			}
			if mended {
				down.Store(false)
			}
			for !mended && f.Settled() < 10 { // each once a probe has called it
				f.Park("a", false)
				time.Sleep(time.Second)
			}
			mustClose(t, f, 10)
			got := log.String()
			if !strings.Contains(got, "route fails for every record") || strings.Contains(got, none) == mended || strings.Contains(got, works) != mended {
				t.Errorf("mended: %v: the log says\n%s", mended, got)
			}
		})
	}
}

func TestParkNeedsDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, o := range map[string]Options{"none": {}, "stop": {Policy: Stop, DeadLetter: &letters{}}} {
			o.Logger = quiet
			f := Open(t.Context(), routes(script(new(log), "a", errDown)), o)
			mustSubmit(t, f, rec("x", 1))
			synctest.Wait()
			if n, pending := f.Park("a", false); n+pending != 0 {
				t.Errorf("%s: %d parked, %d pending", name, n, pending)
			}
			_, _ = f.Close(t.Context())
			if n, pending := f.Park("a", false); n+pending != 0 {
				t.Errorf("%s, closed: %d parked, %d pending", name, n, pending)
			}
		}
	})
}
