package flow

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
)

func TestStuckHandlerIsReportedOnceAndAgainWhenItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		start := time.Now()
		hooks := Hooks{Stuck: func(r *sluice.Record, route *sluice.Route, since time.Duration, returned bool) {
			l.add("%s %d %v", route.Name, nth(r), returned)
			if d := time.Since(start); since < time.Minute || since > d {
				t.Errorf("since %v after %v", since, d)
			}
		}}
		f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
			switch keyOf(r) {
			case "stuck":
				time.Sleep(10 * time.Minute)
			case "slow":
				time.Sleep(59 * time.Second)
			}
			return nil
		}, ok), Options{Logger: quiet, Hooks: hooks})
		mustSubmit(t, f, rec("stuck", 1), rec("slow", 2), rec("slow", 3), rec("stuck", 4))
		time.Sleep(59 * time.Second)
		l.want(t)
		if len(f.Held()) != 0 {
			t.Errorf("held: %+v", f.Held())
		}
		time.Sleep(17 * time.Second)
		l.want(t, "a 1 false")
		held := f.Held()
		if len(held) != 1 || !held[0].Stuck || held[0].Route != "a" || held[0].Bytes != 200 || held[0].Age != 76*time.Second {
			t.Errorf("held: %+v", held)
		}
		time.Sleep(9 * time.Minute)
		l.want(t, "a 1 false", "a 1 true")
		mustClose(t, f, 4)
		l.want(t, "a 1 false", "a 1 true", "a 4 false", "a 4 true")
	})
}

func TestStuckDeadLettersAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		f := Open(t.Context(), routes(bad(sluice.Permanent(errDown))), Options{
			Logger: quiet, DeadLetter: slowLetters{}, StuckAfter: time.Second,
			Hooks: Hooks{Stuck: func(r *sluice.Record, route *sluice.Route, since time.Duration, returned bool) {
				l.add("%d %v", nth(r), returned)
			}},
		})
		mustSubmit(t, f, recs("bad")...)
		mustClose(t, f, 1)
		l.want(t, "1 false", "1 true")
	})
}

// The watch may come too late: the handler has returned meanwhile.
func TestACallThatReturnedIsNotReported(t *testing.T) {
	f := &Flow{opts: Options{Logger: quiet, Hooks: Hooks{Stuck: func(*sluice.Record, *sluice.Route, time.Duration, bool) {
		t.Error("reported")
	}}}}
	w := &worker{flow: f}
	for range 2 {
		w.enter(nil)
		seen := w.current.Load()
		w.returned()
		f.report(suspect{w: w, call: seen, rec: &sluice.Record{}})
		w.enter(nil)
		f.report(suspect{w: w, call: seen, rec: &sluice.Record{}})
		w.returned()
	}
}

type slowLetters struct{}

func (slowLetters) Park(context.Context, *sluice.Record, sluice.Failure) error {
	time.Sleep(time.Hour)
	return nil
}

// A flow that has nothing to do has no goroutine and no timer.
func TestIdleFlowEndsItsWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error {
			time.Sleep(time.Second)
			return nil
		}), Options{Logger: quiet})
		workers := func() int {
			synctest.Wait()
			f.mu.Lock()
			defer f.mu.Unlock()
			return len(f.all)
		}
		for range 2 {
			mustSubmit(t, f, many("x", 50)...)
			if n := workers(); n != 50 {
				t.Errorf("%d workers", n)
			}
			time.Sleep(time.Minute)
			if n := workers(); n != 0 || !f.clock.at.IsZero() {
				t.Errorf("%d workers a minute later, clock set for %v", n, f.clock.at)
			}
		}
		mustClose(t, f, 100)
	})
}

// Workers whose handlers waited in a sink all at once are kept for the next
// time, but not for ever: those that had nothing to do for a while end, although
// the flow is never idle.
func TestWorkersThatAreNotUsedEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crowd := true
		sink := batch.New(func(context.Context, []int) []error { time.Sleep(time.Second); return nil }, nil,
			batch.Options{MaxItems: 1000, InFlight: 1000})
		f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
			if !crowd {
				time.Sleep(10 * time.Second)
				return nil
			}
			return sink.Do(ctx, 1)
		}), Options{Logger: quiet, Concurrency: 10})
		workers := func() int {
			synctest.Wait()
			f.mu.Lock()
			defer f.mu.Unlock()
			return len(f.all)
		}
		mustSubmit(t, f, many("x", 500)...)
		synctest.Wait()
		time.Sleep(2 * time.Second)
		if n := workers(); n != 500 {
			t.Errorf("%d workers kept of 500", n)
		}
		crowd = false
		for range 10 { // busy with three items, never idle
			mustSubmit(t, f, many("y", 3)...)
			time.Sleep(5 * time.Second)
		}
		if n := workers(); n > 6 {
			t.Errorf("%d workers for three items", n)
		}
		mustClose(t, f, 530)
		if n := workers(); n != 0 {
			t.Errorf("%d workers after Close", n)
		}
	})
}
