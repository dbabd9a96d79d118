package flow

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
)

func TestStopStartsNothingLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l, told log
		f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
			l.add("%d", nth(r))
			switch nth(r) {
			case 1:
				time.Sleep(10 * time.Second)
			case 2:
				time.Sleep(time.Second)
			case 3:
				time.Sleep(2 * time.Second)
				return errDown
			case 4:
				time.Sleep(time.Minute) // runs, and may finish
			}
			return nil
		}), Options{Logger: quiet, Policy: Stop, Concurrency: 4, Hooks: told.hooks()})
		mustSubmit(t, f, rec("a", 1), rec("b", 2), rec("c", 3), rec("d", 4), rec("b", 5), rec("a", 6), rec("b", 7), rec("c", 8))
		start := time.Now()
		n, err := f.Close(t.Context())
		var re *RecordError
		if n != 2 || !errors.As(err, &re) || re.Ordinal != 3 || re.Route != "a" || !errors.Is(err, errDown) {
			t.Errorf("Close = %d, %v", n, err)
		}
		if d := time.Since(start); d != time.Minute {
			t.Errorf("Close took %v: what runs is to finish", d)
		}
		got := l.all()
		want := map[string]bool{"1": true, "2": true, "3": true, "4": true, "5": true, "7": true}
		if len(got) != len(want) {
			t.Errorf("handled %q", got)
		}
		if !contains(told.all(), "a 3 stopped") || !contains(told.all(), "a 4 done") {
			t.Errorf("told %q", told.all())
		}
	})
}

// What comes before the failure is still started: it makes the answer better.
func TestStopGoesOnBelowTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
			l.add("%d", nth(r))
			time.Sleep(time.Second)
			if nth(r) == 3 || nth(r) == 2 && keyOf(r) == "a" {
				return fmt.Errorf("failure of %d", nth(r))
			}
			return nil
		}), Options{Logger: quiet, Policy: Stop})
		mustSubmit(t, f, rec("a", 1), rec("a", 2), rec("b", 3), rec("b", 4), rec("a", 5))
		n, err := f.Close(t.Context())
		var re *RecordError
		if n != 1 || !errors.As(err, &re) || re.Ordinal != 2 || err.Error() != `flow: record 2 (table "t", sequence `+string(recordtest.Sequence(2))+`), route "a": failure of 2` {
			t.Errorf("Close = %d, %v: want the lowest failure", n, err)
		}
		if got := l.all(); len(got) != 3 {
			t.Errorf("handled %q", got)
		}
	})
}

func TestStopWithSeveralRoutesStartsNoFurtherRouteOfALaterRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
			if nth(r) == 1 {
				return errDown
			}
			time.Sleep(time.Second)
			return nil
		}, func(ctx context.Context, r *sluice.Record) error {
			l.add("b %d", nth(r))
			return nil
		}), Options{Logger: quiet, Policy: Stop})
		mustSubmit(t, f, recs("x", "y")...)
		if n, err := f.Close(t.Context()); n != 0 || err == nil {
			t.Errorf("Close = %d, %v", n, err)
		}
		l.want(t)
	})
}

func TestStopRetriesNothing(t *testing.T) {
	for name, fail := range map[string]error{
		"plain":       errDown,
		"retry after": sluice.RetryAfter(time.Millisecond, errDown),
		"remaining":   &sluice.Remaining{Rest: ok, Err: errDown},
		"permanent":   sluice.Permanent(errDown), // there is no dead letter
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error { calls++; return fail }),
					Options{Logger: quiet, Policy: Stop})
				mustSubmit(t, f, rec("x", 1))
				if n, err := f.Close(t.Context()); n != 0 || !errors.Is(err, errDown) || calls != 1 {
					t.Errorf("Close = %d, %v after %d calls", n, err, calls)
				}
			})
		})
	}
}

func TestStopParksWhatFailedForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw := `{"eventName":"INSERT","dynamodb":{"Keys":{"pk":{"S":"x"}},"NewImage":{"a":{"Q":1}},"SequenceNumber":"` + string(recordtest.Sequence(42)) + `"}}`
		d := &letters{}
		f := Open(t.Context(), routes(bad(sluice.Permanent(errDown))), Options{Logger: quiet, Policy: Stop, DeadLetter: d})
		mustSubmit(t, f, rec("bad", 1), *sluice.DecodeRecord([]byte(raw)), rec("good", 3))
		mustClose(t, f, 3)
		if len(d.all()) != 2 {
			t.Errorf("parked %q", d.all())
		}
	})
}

func TestStopWithFailingDeadLettersStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("full")
		var refused []error
		f := Open(t.Context(), routes(bad(sluice.Permanent(errDown))), Options{Logger: quiet, Policy: Stop, DeadLetter: &letters{errs: []error{full}},
			Hooks: Hooks{ParkFailed: func(_ *sluice.Record, _ *sluice.Route, err error) { refused = append(refused, err) }}})
		mustSubmit(t, f, recs("good", "bad")...)
		if n, err := f.Close(t.Context()); n != 1 || !errors.Is(err, full) {
			t.Errorf("Close = %d, %v", n, err)
		}
		if len(refused) != 1 || refused[0] != full {
			t.Errorf("refusals that are told: %v", refused)
		}
	})
}

func TestStopWithoutDeadLettersStopsAtWhatCannotBeDecoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Open(t.Context(), routes(ok), Options{Logger: quiet, Policy: Stop})
		mustSubmit(t, f, rec("x", 1), *sluice.DecodeRecord([]byte("{")))
		var re *RecordError
		if n, err := f.Close(t.Context()); n != 1 || !errors.As(err, &re) || re.Ordinal != 2 || re.Route != "" {
			t.Errorf("Close = %d, %v", n, err)
		}
	})
}

func TestStopParksWhatIsTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &letters{}
		m := routes(func(context.Context, *sluice.Record) error { return errDown })
		m.routes[0].MaxAge = time.Hour
		f := Open(t.Context(), m, Options{Logger: quiet, Policy: Stop, DeadLetter: d})
		old, young := rec("x", 1), rec("y", 2)
		old.Created, young.Created = time.Now().Add(-time.Hour), time.Now().Add(-time.Hour+time.Second)
		mustSubmit(t, f, old, young)
		if n, err := f.Close(t.Context()); n != 1 || !errors.Is(err, errDown) {
			t.Errorf("Close = %d, %v", n, err)
		}
		d.want(t, "a 1 1")
	})
}

func TestStopWakesASubmitThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error {
			time.Sleep(time.Second)
			return errDown
		}), Options{Logger: quiet, Policy: Stop, Window: 2})
		last, err := f.Submit(t.Context(), many("x", 10)...)
		if last != 2 || !errors.Is(err, errDown) {
			t.Errorf("Submit = %d, %v", last, err)
		}
		if n, err := f.Close(t.Context()); n != 0 || !errors.Is(err, errDown) {
			t.Errorf("Close = %d, %v", n, err)
		}
	})
}

// No route is judged by a flow that ends at the first failure: each
// invocation is a probe of its own.
func TestStopJudgesNoRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := routes(func(context.Context, *sluice.Record) error { return errDown })
		g := NewGroup(m)
		for i := range 20 {
			f := Open(t.Context(), m, Options{Logger: quiet, Policy: Stop, Group: g})
			mustSubmit(t, f, rec(fmt.Sprint(i), i))
			f.Close(t.Context())
		}
		if out := g.States(); out[0].State != Works || out[0].Waiting != 0 {
			t.Errorf("outages %+v", out)
		}
	})
}

func TestMarginBeforeTheDeadline(t *testing.T) {
	const budget = 30 * time.Second
	for name, c := range map[string]struct {
		margin, want time.Duration
	}{
		"a tenth by default": {0, 3 * time.Second},
		"given":              {4 * time.Second, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), budget)
				defer cancel()
				start := time.Now()
				var lastStart, cancelled time.Duration
				f := Open(ctx, routes(func(ctx context.Context, r *sluice.Record) error {
					lastStart = time.Since(start)
					select {
					case <-time.After(700 * time.Millisecond):
						return nil
					case <-ctx.Done():
					}
					cancelled = time.Since(start)
					return ctx.Err()
				}), Options{Logger: quiet, Policy: Stop, Order: ByShard, Margin: c.margin})
				mustSubmit(t, f, many("x", 100)...)
				n, err := f.Close(ctx)
				if n < 35 || n >= 43 || !errors.Is(err, errDeadline) {
					t.Errorf("Close = %d, %v", n, err)
				}
				if lastStart > budget-c.want || lastStart < budget-c.want-time.Second {
					t.Errorf("the last one was started at %v", lastStart)
				}
				if cancelled > 0 && cancelled != budget-c.want/2 {
					t.Errorf("cancelled at %v", cancelled)
				}
				if d := time.Since(start); d > budget-c.want/2 {
					t.Errorf("Close returned after %v of %v", d, budget)
				}
			})
		})
	}
}

func TestHandlersAreCancelledInTheMiddleOfTheMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		start := time.Now()
		f := Open(ctx, routes(func(ctx context.Context, r *sluice.Record) error {
			if nth(r) == 2 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}), Options{Logger: quiet, Policy: Stop, Margin: 4 * time.Second})
		mustSubmit(t, f, recs("x", "y", "z")...)
		if n, err := f.Close(ctx); n != 1 || !errors.Is(err, errDeadline) {
			t.Errorf("Close = %d, %v", n, err)
		}
		if d := time.Since(start); d != 18*time.Second {
			t.Errorf("closed after %v", d)
		}
	})
}

// Why the batch stopped is more telling than that time ran out afterwards.
func TestAFailureIsToldRatherThanTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		f := Open(ctx, routes(func(ctx context.Context, r *sluice.Record) error {
			if nth(r) == 1 {
				return errDown
			}
			<-ctx.Done()
			return nil
		}), Options{Logger: quiet, Policy: Stop})
		mustSubmit(t, f, recs("x", "y")...)
		if n, err := f.Close(ctx); n != 0 || !errors.Is(err, errDown) {
			t.Errorf("Close = %d, %v", n, err)
		}
	})
}

func TestMarginWithAHandlerThatDoesNotObey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		start := time.Now()
		f := Open(ctx, routes(func(ctx context.Context, r *sluice.Record) error {
			if nth(r) == 2 {
				time.Sleep(time.Minute)
			}
			return nil
		}), Options{Logger: quiet, Policy: Stop, Margin: 4 * time.Second})
		mustSubmit(t, f, recs("x", "y", "z")...)
		n, err := f.Close(ctx)
		want := fmt.Sprintf("flow: ended with 1 of 3 records settled: a handler still runs: route \"a\", key hash %016x: %v",
			rec("y", 2).Keys.Hash(), errDeadline)
		if n != 1 || err == nil || err.Error() != want {
			t.Errorf("Close = %d, %v", n, err)
		}
		if d := time.Since(start); d != 19*time.Second {
			t.Errorf("Close returned after %v", d)
		}
		select {
		case <-f.Idle():
			t.Error("idle while a handler runs")
		default:
		}
		<-f.Idle()
		if d := time.Since(start); d != time.Minute || f.Settled() != 1 {
			t.Errorf("idle after %v, settled %d", d, f.Settled())
		}
	})
}

func TestNothingStartsWhenOnlyTheMarginIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var l log
		f := Open(ctx, routes(script(&l, "a")), Options{Logger: quiet, Policy: Stop, Margin: time.Second})
		if last, err := f.Submit(ctx, rec("x", 1)); last != 0 || !errors.Is(err, errDeadline) {
			t.Errorf("Submit = %d, %v", last, err)
		}
		mustClose(t, f, 0)
		l.want(t)
	})
}

// A budget shorter than the least margin is not all margin.
func TestMarginIsHalfOfTheTimeAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f := Open(ctx, routes(ok), Options{Logger: quiet, Policy: Stop})
		mustSubmit(t, f, recs("x", "y")...)
		mustClose(t, f, 2)
	})
}
