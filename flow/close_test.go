package flow

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

func TestCloseDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error {
			time.Sleep(time.Second)
			return nil
		}), Options{Logger: quiet, Concurrency: 1})
		mustSubmit(t, f, many("x", 10)...)
		mustClose(t, f, 10)
		mustClose(t, f, 10) // again
		if _, err := f.Submit(t.Context(), rec("x", 1)); !errors.Is(err, errClosed) {
			t.Errorf("Submit after Close: %v", err)
		}
		select {
		case <-f.Idle():
		default:
			t.Error("not idle")
		}
	})
}

func TestCloseOfAnEmptyFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, ctx := range []context.Context{t.Context(), ctx} {
			f := Open(ctx, routes(ok), Options{Logger: quiet})
			mustClose(t, f, 0)
		}
	})
}

func TestCloseGivesObedientHandlersTheTimeToReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var cancelled time.Duration
		f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
			if nth(r) == 1 {
				return nil
			}
			<-ctx.Done()
			cancelled = time.Since(start)
			time.Sleep(100 * time.Millisecond)
			return ctx.Err()
		}), Options{Logger: quiet, Concurrency: 1})
		mustSubmit(t, f, many("x", 10)...)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		n, err := f.Close(ctx)
		if n != 1 || err == nil || !strings.Contains(err.Error(), "1 of 10") {
			t.Errorf("Close = %d, %v", n, err)
		}
		if cancelled != 4500*time.Millisecond || time.Since(start) != 4600*time.Millisecond {
			t.Errorf("cancelled after %v, closed after %v", cancelled, time.Since(start))
		}
		select {
		case <-f.Idle():
		default:
			t.Error("not idle")
		}
	})
}

func TestCloseLeavesAStuckHandlerBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told log
		release := make(chan struct{})
		f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
			if keyOf(r) == "stuck" {
				<-release
			}
			return nil
		}), Options{Logger: quiet, Hooks: told.hooks()})
		mustSubmit(t, f, recs("x", "stuck", "y", "stuck")...)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		n, err := f.Close(ctx)
		want := fmt.Sprintf(`route "a", key hash %016x`, rec("stuck", 0).Keys.Hash())
		if n != 1 || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
			t.Errorf("Close = %d, %v", n, err)
		}
		close(release)
		<-f.Idle()
		synctest.Wait()
		if f.Settled() != 1 || len(told.all()) != 2 {
			t.Errorf("after Close: settled %d, told %q", f.Settled(), told.all())
		}
	})
}

func TestCancellingOpensContextEndsTheFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("lease lost")
		ctx, cancel := context.WithCancelCause(t.Context())
		var l, told log
		f := Open(ctx, routes(func(ctx context.Context, r *sluice.Record) error {
			l.add("%d", nth(r))
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Hour):
				return nil
			}
		}), Options{Logger: quiet, Concurrency: 2, Window: 4, Hooks: told.hooks(), DeadLetter: &letters{}})
		time.AfterFunc(time.Second, func() { cancel(gone) })
		if last, err := f.Submit(t.Context(), many("x", 10)...); last != 4 || !errors.Is(err, gone) {
			t.Errorf("Submit = %d, %v", last, err)
		}
		n, err := f.Close(t.Context())
		if n != 0 || !errors.Is(err, gone) {
			t.Errorf("Close = %d, %v", n, err)
		}
		if len(l.all()) != 2 {
			t.Errorf("handled %q", l.all())
		}
		for _, line := range told.all() { // cut off is no failure of theirs
			if !strings.HasSuffix(line, "retried") {
				t.Errorf("told %q", line)
			}
		}
	})
}

func TestCancellationEndsRecordsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		m := routes(func(ctx context.Context, r *sluice.Record) error {
			if keyOf(r) == "x0" {
				return sluice.RetryAfter(time.Hour, errDown)
			}
			time.Sleep(time.Second)
			return nil
		})
		m.routes[0].Concurrency = 1
		g := NewGroup(m)
		f := Open(ctx, m, Options{Logger: quiet, Group: g})
		mustSubmit(t, f, many("x", 10)...)
		time.Sleep(2500 * time.Millisecond)
		cancel()
		if n, err := f.Close(t.Context()); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("Close = %d, %v", n, err)
		}
		if gt := g.gates[0]; gt.running != 0 || len(gt.queues) > 0 || gt.waiting != 0 {
			t.Errorf("running %d, queues %v, waiting %d", gt.running, gt.queues, gt.waiting)
		}
	})
}

// A queue outlives the flow; its records must not.
func TestClosingLeavesNothingInTheQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := routes(ok)
		m.routes[0].Rate = 1.0 / 3600
		g := NewGroup(m)
		f := Open(t.Context(), m, Options{Logger: quiet, Group: g})
		mustSubmit(t, f, many("x", 10)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if n, err := f.Close(ctx); n > 1 || err == nil {
			t.Errorf("Close = %d, %v", n, err)
		}
		if gt := g.gates[0]; len(gt.queues) > 0 || gt.waiting != 0 {
			t.Error("records of the closed flow are queued")
		}
	})
}

func TestCloseDuringSubmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error {
			time.Sleep(time.Second)
			return nil
		}), Options{Logger: quiet, Window: 3})
		var last uint64
		var err error
		done := make(chan struct{})
		go func() {
			last, err = f.Submit(t.Context(), many("x", 10)...)
			close(done)
		}()
		time.Sleep(1500 * time.Millisecond)
		n, cerr := f.Close(t.Context())
		<-done
		if last != 6 || !errors.Is(err, errClosed) || n != 6 || cerr != nil {
			t.Errorf("Submit = %d, %v; Close = %d, %v", last, err, n, cerr)
		}
	})
}

func TestNothingRunsAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told log
		hooks := told.hooks()
		hooks.Stuck = func(*sluice.Record, *sluice.Route, time.Duration, bool) { told.add("stuck") }
		hooks.ParkFailed = func(*sluice.Record, *sluice.Route, error) { told.add("park") }
		m := routes(func(ctx context.Context, r *sluice.Record) error { return errDown })
		f := Open(t.Context(), m, Options{Logger: quiet, Hooks: hooks})
		mustSubmit(t, f, many("x", 20)...)
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f.Close(ctx)
		before := len(told.all())
		time.Sleep(100 * time.Hour)
		if n := len(told.all()); n != before {
			t.Errorf("%d hooks called after Close", n-before)
		}
	})
}
