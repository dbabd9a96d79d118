package flow

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/recordtest"
)

// bad fails with err for records of the item "bad".
func bad(err error) sluice.Handler {
	return func(ctx context.Context, r *sluice.Record) error {
		if keyOf(r) == "bad" {
			return err
		}
		return nil
	}
}

func TestPermanentIsParkedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told log
		d := &letters{}
		f := Open(t.Context(), routes(bad(sluice.Permanent(errDown)), ok), Options{Logger: quiet, DeadLetter: d, Hooks: told.hooks()})
		mustSubmit(t, f, recs("bad", "bad")...)
		start := time.Now()
		mustClose(t, f, 2)
		if time.Since(start) != 0 {
			t.Error("it was not parked at once")
		}
		d.want(t, "a 1 1", "a 2 1") // deadLetter: record, so that the second was tried as well
		told.want(t, "b 1 done", "a 1 parked", "b 2 done", "a 2 parked")
		if x := d.failures[0]; x.First != x.Last || !errors.Is(x.First, errDown) || x.FirstAt != start || x.LastAt != start {
			t.Errorf("parked for %+v", x)
		}
	})
}

func TestUndecodableRecordIsParkedWithoutARoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw := `{"eventName":"INSERT","dynamodb":{"Keys":{"pk":{"S":"x"}},"NewImage":{"a":{"Q":1}},"SequenceNumber":"` + string(recordtest.Sequence(42)) + `"}}`
		var told log
		d := &letters{}
		f := Open(t.Context(), routes(ok), Options{Logger: quiet, DeadLetter: d, Hooks: told.hooks()})
		mustSubmit(t, f, *sluice.DecodeRecord([]byte(raw)), rec("x", 8))
		mustClose(t, f, 2)
		d.want(t, " 42 0")
		told.want(t, "- 42 parked", "a 8 done")
		if string(d.recs[0].Raw()) != raw || d.failures[0].Last == nil {
			t.Errorf("parked %s for %v", d.recs[0].Raw(), d.failures[0].Last)
		}
	})
}

func TestMatchErrorAndUnknownRouteAreParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &letters{}
		m := routes(ok)
		stray := &table{routes: []*sluice.Route{{Name: "stray", Handler: ok}}}
		m.pick = func(r *sluice.Record) ([]int, error) {
			if keyOf(r) == "error" {
				return nil, errDown
			}
			return []int{0}, nil
		}
		f := Open(t.Context(), m, Options{Logger: quiet, DeadLetter: d, Group: NewGroup(m)})
		mustSubmit(t, f, rec("error", 1))
		mustClose(t, f, 1)
		f = Open(t.Context(), stray, Options{Logger: quiet, DeadLetter: d, Group: NewGroup(m)})
		mustSubmit(t, f, rec("x", 2))
		mustClose(t, f, 1)
		d.want(t, " 1 0", " 2 0")
		if got := d.failures[1].Last.Error(); !strings.Contains(got, `"stray"`) || !strings.Contains(got, "index 0") {
			t.Errorf("parked for %v", got)
		}
	})
}

func TestUnroutedIsSettledAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told log
		m := routes(ok)
		m.pick = func(r *sluice.Record) ([]int, error) { return nil, nil }
		f := Open(t.Context(), m, Options{Logger: quiet, Hooks: told.hooks()})
		mustSubmit(t, f, rec("x", 1))
		mustClose(t, f, 1)
		told.want(t, "- 1 unrouted")
	})
}

func TestFailingDeadLettersAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told log
		hooks := told.hooks()
		hooks.ParkFailed = func(rec *sluice.Record, route *sluice.Route, err error) {
			told.add("%s %d park failed: %v", route.Name, nth(rec), err)
		}
		calls := 0
		d := &letters{errs: make([]error, 20)}
		for i := range d.errs {
			d.errs[i] = fmt.Errorf("full %d", i)
		}
		f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
			calls++
			return sluice.Permanent(errDown)
		}), Options{Logger: quiet, DeadLetter: d, Hooks: hooks})
		mustSubmit(t, f, rec("x", 1))
		synctest.Wait()
		if f.Settled() != 0 {
			t.Error("settled although it is not parked")
		}
		if h := f.Held(); len(h) != 1 || h[0].Route != "a" || !errors.Is(h[0].Err, errDown) {
			t.Errorf("held: %+v", h)
		}
		start := time.Now()
		mustClose(t, f, 1)
		if d := time.Since(start); d < 10*time.Second || d > 20*maxParkBackoff {
			t.Errorf("20 retries took %v", d)
		}
		if calls != 1 {
			t.Errorf("the handler was called %d times", calls)
		}
		if l := told.all(); len(l) != 21 || l[0] != "a 1 park failed: full 0" || l[20] != "a 1 parked" {
			t.Errorf("told %q", l)
		}
	})
}

func TestPanicOfTheDeadLettersIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &crashing{}
		f := Open(t.Context(), routes(bad(sluice.Permanent(errDown))), Options{Logger: quiet, DeadLetter: d})
		mustSubmit(t, f, recs("bad", "good")...)
		mustClose(t, f, 2)
		if d.n != 3 {
			t.Errorf("parked by call %d", d.n)
		}
	})
}

type crashing struct{ n int }

func (c *crashing) Park(context.Context, *sluice.Record, sluice.Failure) error {
	switch c.n++; c.n {
	case 1:
		panic("boom")
	case 2:
		runtime.Goexit()
	}
	return nil
}

func TestWithoutDeadLettersAPermanentFailureHoldsItsLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told log
		f := Open(t.Context(), routes(bad(sluice.Permanent(errDown))), Options{Logger: quiet, Hooks: told.hooks()})
		mustSubmit(t, f, recs("good", "bad", "bad", "good")...)
		time.Sleep(100 * time.Hour)
		held := f.Held()
		if len(held) != 1 || held[0].Bytes != 200 || held[0].Attempts != 1 || held[0].Age != 100*time.Hour || held[0].Stuck ||
			held[0].Route != "a" || recordtest.Nth(held[0].Sequence) != 2 || held[0].KeyHash != rec("bad", 1).Keys.Hash() || !errors.Is(held[0].Err, errDown) {
			t.Errorf("held: %+v", held)
		}
		n, err := f.Close(t.Context()) // nothing will come of waiting
		var re *RecordError
		if n != 1 || !errors.As(err, &re) || re.Ordinal != 2 || re.Route != "a" || recordtest.Nth(re.Sequence) != 2 || !errors.Is(err, errDown) {
			t.Errorf("Close = %d, %v", n, err)
		}
		if got := told.all(); len(got) != 3 || !contains(got, "a 2 stopped") {
			t.Errorf("told %q", got)
		}
	})
}

func contains(lines []string, want string) bool {
	for _, l := range lines {
		if l == want {
			return true
		}
	}
	return false
}

func TestParkItemParksLaterChangesBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &letters{}
		var l log
		f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
			if nth(r) == 1 {
				return sluice.Permanent(errDown)
			}
			l.add("a %d", nth(r))
			return nil
		}, script(&l, "b")), Options{Logger: quiet, DeadLetter: d, ParkItem: true, Concurrency: 1})
		mustSubmit(t, f, rec("x", 1), rec("x", 2), rec("y", 3), rec("x", 4))
		mustClose(t, f, 4)
		d.want(t, "a 1 1", "a 2 0", "a 4 0")
		if got := l.all(); contains(got, "a 2") || contains(got, "a 4") || !contains(got, "a 3") || !contains(got, "b 2 ok") {
			t.Errorf("handled %q", got) // the other route goes on
		}
		if !errors.Is(d.failures[1].Last, errHeld) {
			t.Errorf("parked for %v", d.failures[1].Last)
		}
	})
}

func TestParkItemHoldsEveryRouteBehindAnUndecodableChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw := `{"eventName":"INSERT","dynamodb":{"Keys":{"pk":{"S":"x"}},"NewImage":{"a":{"Q":1}},"SequenceNumber":"` + string(recordtest.Sequence(42)) + `"}}`
		d := &letters{}
		redriven := rec("x", 3)
		redriven.Origin = sluice.Redriven
		f := Open(t.Context(), routes(ok), Options{Logger: quiet, DeadLetter: d, ParkItem: true})
		mustSubmit(t, f, *sluice.DecodeRecord([]byte(raw)), rec("x", 2), redriven, rec("y", 4))
		mustClose(t, f, 4)
		d.want(t, " 42 0", "a 2 0") // what comes back from the dead letters is not held
	})
}

// asked is a DeadLetter that holds item "held" until it is redriven.
type asked struct {
	letters
	fails int
	free  atomic.Bool
}

func (a *asked) Holds(ctx context.Context, r *sluice.Record, route string) (bool, error) {
	if a.fails--; a.fails >= 0 {
		return false, errDown
	}
	return keyOf(r) == "held" && !a.free.Load(), nil
}

func TestParkItemAsksTheDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &asked{fails: 2}
		f := Open(t.Context(), routes(ok), Options{Logger: quiet, DeadLetter: d, ParkItem: true, Concurrency: 1})
		mustSubmit(t, f, recs("held", "other")...)
		time.Sleep(time.Minute)
		d.free.Store(true)
		mustSubmit(t, f, rec("held", 3))
		mustClose(t, f, 3)
		d.want(t, "a 1 0")
	})
}

// Nothing of an item is parked while its leader waits, so one answer is enough.
func TestTheDeadLettersAreAskedOncePerRecordAndRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &counted{asked: map[string]int{}}
		fails := 5
		m := routes(func(ctx context.Context, r *sluice.Record) error {
			time.Sleep(time.Second)
			if fails--; fails >= 0 {
				return errDown
			}
			return nil
		})
		m.routes[0].Concurrency = 1
		f := Open(t.Context(), m, Options{Logger: quiet, DeadLetter: d, ParkItem: true})
		mustSubmit(t, f, recs("x", "y", "z")...)
		mustClose(t, f, 3)
		for i := 1; i <= 3; i++ {
			if n := d.asked[fmt.Sprint("a", i)]; n != 1 {
				t.Errorf("asked %d times for record %d", n, i)
			}
		}
	})
}

type counted struct {
	letters
	asked map[string]int
}

func (c *counted) Holds(ctx context.Context, r *sluice.Record, route string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[fmt.Sprint(route, nth(r))]++
	return false, nil
}

func TestWhatIsTooOldIsParkedRatherThanLost(t *testing.T) {
	if localtest.Elsewhere(t) { // many hours
		return
	}
	for name, c := range map[string]struct {
		created time.Duration // before submission; 0: not known
		origin  sluice.Origin
		route   time.Duration // MaxAge
		want    time.Duration // in the flow, at least
	}{
		"since its creation":           {created: 15 * time.Hour, want: 5 * time.Hour},
		"since submission":             {want: 20 * time.Hour},
		"the route's own":              {created: time.Hour, route: 2 * time.Hour, want: time.Hour},
		"too old already":              {created: 30 * time.Hour},
		"redriven: nothing is trimmed": {created: 30 * time.Hour, origin: sluice.Redriven, want: 20 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &letters{}
				m := routes(func(context.Context, *sluice.Record) error { return errDown })
				m.routes[0].MaxAge = c.route
				f := Open(t.Context(), m, Options{Logger: quiet, DeadLetter: d})
				r := rec("x", 1)
				r.Origin = c.origin
				start := time.Now()
				if c.created > 0 {
					r.Created = start.Add(-c.created)
				}
				mustSubmit(t, f, r)
				mustClose(t, f, 1)
				if took := time.Since(start); took < c.want || took > c.want+time.Minute {
					t.Errorf("parked after %v, want %v", took, c.want)
				}
				if len(d.failures) != 1 || d.failures[0].Attempts == 0 {
					t.Errorf("parked %+v", d.failures)
				}
			})
		})
	}
}

// RetryAfter past that time would be a try that comes too late.
func TestRetryAfterDoesNotOutwaitTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &letters{}
		calls := 0
		f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error {
			calls++
			return sluice.RetryAfter(6*time.Hour, errDown)
		}), Options{Logger: quiet, DeadLetter: d})
		r, start := rec("x", 1), time.Now()
		r.Created = start.Add(-10 * time.Hour)
		mustSubmit(t, f, r)
		mustClose(t, f, 1)
		if took := time.Since(start); took != 10*time.Hour || calls != 2 || len(d.failures) != 1 {
			t.Errorf("%d calls and %d dead letters after %v", calls, len(d.failures), took)
		}
	})
}
