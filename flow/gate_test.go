package flow

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
)

// unsettled counts the records of f that are not settled.
func unsettled(f *Flow) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.window.records + f.window.held
}

// giveUp closes a flow whose records will not all be settled.
func giveUp(f *Flow) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f.Close(ctx)
}

// beginOutage has n items fail until the route is in an outage.
func beginOutage(t *testing.T, f *Flow, n int) {
	t.Helper()
	for i := range n {
		mustSubmit(t, f, rec(fmt.Sprint("bad", i), i+1))
		if i == 0 { // from the first failure on calls are counted
			time.Sleep(time.Millisecond)
		}
	}
	time.Sleep(3 * time.Second)
	for range 90 { // single calls that are refused for load pause at random
		if f.group.States()[0].State == Outage {
			return
		}
		time.Sleep(time.Second)
	}
	t.Fatal("no outage after a minute of failures")
}

// While one probe hangs, another fails after the time at which the next would
// be due beside the first: probes must go on.
func TestProbesGoOnBesideOneThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		begun := time.Now()
		var hangs, works atomic.Bool
		var calls atomic.Int64
		m := routes(func(context.Context, *sluice.Record) error {
			if works.Load() {
				return nil
			}
			calls.Add(1)
			if time.Since(begun) < 30*time.Second {
				return errDown
			}
			if hangs.CompareAndSwap(false, true) {
				<-release
			}
			time.Sleep(defaultMaxBackoff - time.Millisecond)
			return errDown
		})
		f := Open(t.Context(), m, Options{Logger: quiet, StuckAfter: 1000 * time.Hour})
		beginOutage(t, f, 5)
		time.Sleep(10 * time.Minute)
		before := calls.Load()
		time.Sleep(10 * time.Minute)
		if calls := calls.Load(); calls < before+10 {
			t.Errorf("%d probes in 10 minutes beside one that hangs", calls-before)
		}
		works.Store(true)
		time.Sleep(10 * time.Minute)
		if n := unsettled(f); n != 1 {
			t.Errorf("%d records wait for a route that works, want the one that hangs", n)
		}
		close(release)
		mustClose(t, f, 5)
	})
}

// A call that hangs must not keep a route that recovers, or that is overloaded,
// from all others.
func TestACallThatHangsDoesNotHoldALearnedLimit(t *testing.T) {
	for _, overload := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			var works atomic.Bool
			m := routes(func(_ context.Context, r *sluice.Record) error {
				down := !works.Load()
				switch {
				case keyOf(r) == "hangs" && !down:
					<-release
				case down && overload:
					return sluice.Overloaded(errDown)
				case down:
					return errDown
				}
				return nil
			})
			f := Open(t.Context(), m, Options{Logger: quiet, StuckAfter: 1000 * time.Hour})
			beginOutage(t, f, 5)
			works.Store(true)
			mustSubmit(t, f, rec("hangs", 6))
			mustSubmit(t, f, many("x", 20)...)
			time.Sleep(5 * time.Minute)
			if n := unsettled(f); n != 1 {
				t.Errorf("overload %v: %d records wait, want the one that hangs: %+v", overload, n, f.group.States()[0])
			}
			close(release)
			mustClose(t, f, 26)
		})
	}
}

// Age is no reason to park a record that nobody has called yet, when its route
// works and only its limits make it wait.
func TestARecordThatWaitsForALimitIsCalledHoweverOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d letters
		m := routes(ok)
		m.routes[0].Rate, m.routes[0].MaxAge = 0.1, time.Hour
		f := Open(t.Context(), m, Options{Logger: quiet, DeadLetter: &d})
		old := many("x", 200)
		for i := range old {
			old[i].Created = time.Now().Add(-50 * time.Minute)
		}
		mustSubmit(t, f, old...)
		mustClose(t, f, 200)
		d.want(t)
	})
}

// An item of one table says nothing of the item of another that has the same key.
func TestItemsOfTwoTablesAreTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d letters
		m := routes(func(_ context.Context, r *sluice.Record) error {
			if r.Table == "bad" {
				return errDown
			}
			return nil
		})
		o := Options{Logger: quiet, DeadLetter: &d, Group: NewGroup(m)}
		f, g := Open(t.Context(), m, o), Open(t.Context(), m, o)
		r := rec("x", 1)
		r.Table = "bad"
		mustSubmit(t, f, r)
		for i := range 1200 {
			mustSubmit(t, g, rec(fmt.Sprint("x", i%3)[:1+i%3%2], i+1))
			time.Sleep(time.Second)
		}
		d.want(t, fmt.Sprintf("a 1 %d", max(0, firstAttempts(&d))))
		if len(d.failures) != 1 {
			t.Errorf("%d records parked after 20 minutes, want the poison", len(d.failures))
		}
		giveUp(f)
		mustClose(t, g, 1200)
	})
}

func firstAttempts(d *letters) int {
	if len(d.failures) == 0 {
		return -1
	}
	return d.failures[0].Attempts
}

// Retries that wait in a sink take no part of the slots, so that all of them
// join one request.
func TestRetriesJoinOneRequest(t *testing.T) {
	for _, slots := range []int{1, 4, 64} {
		synctest.Test(t, func(t *testing.T) {
			var sizes []int
			var works atomic.Bool
			sink := batch.New(func(_ context.Context, items []int) []error {
				time.Sleep(10 * time.Millisecond)
				if works.Load() {
					sizes = append(sizes, len(items))
					return nil
				}
				errs := make([]error, len(items))
				for i := range errs {
					errs[i] = sluice.RetryAfter(time.Minute, errDown)
				}
				return errs
			}, nil, batch.Options{MaxItems: 100, Linger: -1})
			f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error { return sink.Do(ctx, 1) }), Options{Logger: quiet, Concurrency: slots})
			mustSubmit(t, f, many("x", 50)...)
			time.Sleep(30 * time.Second)
			works.Store(true)
			mustClose(t, f, 50)
			if !slices.Equal(sizes, []int{50}) {
				t.Errorf("%d slots: requests of %v records, want one of 50", slots, sizes)
			}
		})
	}
}

// Retries of one route that never return must not keep those of another.
func TestRetriesThatHangLeaveOthersASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var called sync.Map
		m := routes(func(_ context.Context, r *sluice.Record) error {
			if _, again := called.LoadOrStore(keyOf(r), true); !again {
				return errDown
			}
			<-release
			return nil
		}, func(_ context.Context, r *sluice.Record) error {
			if _, again := called.LoadOrStore(keyOf(r), true); !again {
				return errDown
			}
			return nil
		})
		m.pick = func(r *sluice.Record) ([]int, error) {
			if keyOf(r)[0] == 'h' {
				return []int{0}, nil
			}
			return []int{1}, nil
		}
		f := Open(t.Context(), m, Options{Logger: quiet, Concurrency: 8, StuckAfter: 1000 * time.Hour})
		mustSubmit(t, f, many("h", 4)...)
		time.Sleep(time.Minute)
		mustSubmit(t, f, many("x", 10)...)
		time.Sleep(time.Minute)
		if n := unsettled(f); n != 4 {
			t.Errorf("%d records wait, want the four that hang", n)
		}
		mustSubmit(t, f, many("fresh", 100)...) // a quarter of the slots at most is taken
		time.Sleep(time.Minute)
		if n := unsettled(f) - 4; n != 0 {
			t.Errorf("%d fresh records wait", n)
		}
		close(release)
		mustClose(t, f, 114)
	})
}

// A failure that comes back while Close ends the flow is nobody's any more.
func TestAFailureAfterCloseLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := routes(func(_ context.Context, r *sluice.Record) error {
			time.Sleep(time.Second)
			return errDown
		})
		f := Open(t.Context(), m, Options{Logger: quiet})
		mustSubmit(t, f, rec("x", 1))
		synctest.Wait()
		// What Close does before it cancels the handlers.
		f.mu.Lock()
		f.stop(0, errClosed)
		f.over = true
		f.abandon()
		f.mu.Unlock()
		time.Sleep(2 * time.Second)
		<-f.Idle()
		g := f.group.gates[0]
		if g.items.failing != 0 || g.waiting != 0 || g.running != 0 {
			t.Errorf("failing %d, waiting %d, running %d", g.items.failing, g.waiting, g.running)
		}
		f.clock.stop()
		f.unwatch()
		f.cancel(errClosed)
	})
}

// Without a dead letter a record that failed for good waits for nobody.
func TestWhatFailedForGoodDoesNotWaitForItsRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Open(t.Context(), routes(func(_ context.Context, r *sluice.Record) error {
			if keyOf(r) == "bad" {
				return sluice.Permanent(errDown)
			}
			return nil
		}), Options{Logger: quiet})
		mustSubmit(t, f, recs("bad", "good")...)
		synctest.Wait()
		if s := f.group.States()[0]; s.Waiting != 0 || !f.group.gates[0].calm.Load() {
			t.Errorf("%+v, calm %v", s, f.group.gates[0].calm.Load())
		}
		giveUp(f)
		if s := f.group.States()[0]; s.Waiting != 0 {
			t.Errorf("after Close: %+v", s)
		}
	})
}

// After an outage nearly all records that wait have failed. When a success was not
// the end of it, the route fails for every record again, although none of them is
// new: what waits must not all be tried meanwhile.
func TestAnOutageThatIsNotOverIsSeenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const records = 3000
		var calls, good atomic.Int64
		var once atomic.Bool
		f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error {
			calls.Add(1)
			time.Sleep(time.Millisecond)
			if once.CompareAndSwap(true, false) {
				good.Add(1)
				return nil
			}
			return errDown
		}), Options{Logger: quiet, DeadLetter: &letters{}})
		mustSubmit(t, f, many("x", records)...)
		for f.group.States()[0].Failing < records*9/10 { // probes: it takes hours
			time.Sleep(time.Minute)
		}
		once.Store(true)
		for good.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		calls.Store(0)
		begun := time.Now()
		for f.group.States()[0].State != Outage && time.Since(begun) < time.Hour {
			time.Sleep(10 * time.Millisecond)
		}
		if took, n := time.Since(begun), calls.Load(); took > 2*outageAfter || n > records {
			t.Errorf("after one success the outage is seen after %v and %d calls", took, n)
		}
		giveUp(f)
		<-f.Idle()
	})
}

// Somebody looks at the routes all the time. The log must say that an overload is
// over when calls succeed again, not when the next one begins.
func TestTheEndOfAnOverloadInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const works = `msg="route works again" route=a`
		var log bytes.Buffer
		var busy atomic.Int64
		f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error {
			defer busy.Add(-1)
			if busy.Add(1) > 4 {
				return sluice.Overloaded(errDown)
			}
			time.Sleep(10 * time.Millisecond)
			return nil
		}), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		mustSubmit(t, f, many("x", 1000)...)
		for range 5 * 60 {
			time.Sleep(time.Second)
			f.group.States()
		}
		synctest.Wait()
		if s := f.group.States()[0]; s.State != Works || !strings.Contains(log.String(), "refuses calls for load") || strings.Contains(log.String(), works) {
			t.Errorf("%+v; the log says\n%s", s, &log)
		}
		mustSubmit(t, f, rec("later", 1001), rec("and later", 1002))
		time.Sleep(time.Second)
		synctest.Wait()
		if n := strings.Count(log.String(), works); n != 1 || !f.group.gates[0].calm.Load() {
			t.Errorf("calm: %v; the log says it %d times:\n%s", f.group.gates[0].calm.Load(), n, &log)
		}
		mustClose(t, f, 1002)
	})
}

// A call that began before another succeeded says nothing of the route now.
func TestOnlyCallsThatBeganAfterTheLastSuccessTellOfAnOutage(t *testing.T) {
	const calls = outageFailures + 1
	success := func(g *gate) { g.ended(nil, 100, succeeded, nil) }
	counted := func(g *gate) (all []*call) {
		for range calls {
			c, _ := g.try(nil)
			all = append(all, c)
		}
		return all
	}
	for name, c := range map[string]struct {
		begin func(g *gate) []*call
		want  State
	}{
		"before": {func(g *gate) []*call {
			g.wait()
			defer success(g)
			return counted(g)
		}, Partial},
		"after": {func(g *gate) []*call {
			g.wait()
			success(g)
			return counted(g)
		}, Outage},
		"not counted, while nothing failed": {func(g *gate) []*call {
			g.wait()
			return make([]*call, calls)
		}, Partial},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(&sluice.Route{})
				for i, c := range c.begin(g) {
					g.ended(c, uint64(i), failed, errDown)
				}
				time.Sleep(outageAfter)
				g.ended(nil, 0, failed, errDown)
				if g.state != c.want {
					t.Errorf("%v, want %v", g.state, c.want)
				}
			})
		})
	}
}
