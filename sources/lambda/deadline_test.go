package lambda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
)

// The margin is the larger of 1 s and 10 % of the time, and at most half of it. No
// record starts within the margin.
func TestMargin(t *testing.T) {
	for _, tt := range []struct{ given, margin, want time.Duration }{
		{3 * time.Second, 0, time.Second},
		{15 * time.Minute, 0, 90 * time.Second},
		{10 * time.Second, 0, time.Second},
		{time.Second, 0, 500 * time.Millisecond},
		{100 * time.Millisecond, 0, 50 * time.Millisecond},
		{time.Minute, 2 * time.Second, 2 * time.Second},
		{time.Minute, time.Hour, 30 * time.Second},
	} {
		t.Run(fmt.Sprint(tt.given, tt.margin), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, late := range []time.Duration{-time.Millisecond, time.Millisecond} {
					ctx, cancel := context.WithTimeout(t.Context(), tt.given)
					defer cancel()
					h := NewHandler(one(func(_ context.Context, rec *sluice.Record) error {
						if rec.Sequence == recordtest.Sequence(1) {
							time.Sleep(tt.given - tt.want + late)
						}
						return nil
					}), Options{Margin: tt.margin, Logger: quiet()})
					want := allDone
					if late > 0 {
						want = failsFrom(2)
					}
					if got := invoke(t, ctx, h, event(change{seq: 1}, change{seq: 2})); got != want {
						t.Errorf("second record due %v after the margin's begin: answer %s", late, got)
					}
				}
			})
		})
	}
}

// Near the deadline no record starts, running handlers are cancelled, and settled
// records stay settled.
func TestDeadlineKeepsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen recorder
		begin := time.Now()
		h := NewHandler(one(func(ctx context.Context, rec *sluice.Record) error {
			seen.add(short(string(rec.Sequence)) + " at " + time.Since(begin).String())
			select {
			case <-time.After(3 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}), Options{Margin: 2 * time.Second, Logger: quiet()})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		// Three seconds each: the third runs from 6 s to 9 s, which is where
		// handlers are cancelled; the fourth would start later than 8 s.
		got := invoke(t, ctx, h, event(change{seq: 1}, change{seq: 2}, change{seq: 3}, change{seq: 4}))
		if took := time.Since(begin); took > 9500*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		if got != failsFrom(3) && got != failsFrom(4) {
			t.Errorf("answer %s", got)
		}
		if want := []string{"1 at 0s", "2 at 3s", "3 at 6s"}; !slices.Equal(seen.take(), want) {
			t.Errorf("handled %v, want %v", seen.take(), want)
		}
	})
}

// Handlers are cancelled exactly at half of the margin.
func TestHandlersAreCancelledAtHalfTheMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var ended time.Duration
		h := NewHandler(one(func(ctx context.Context, _ *sluice.Record) error {
			<-ctx.Done()
			ended = time.Since(begin)
			return ctx.Err()
		}), Options{Margin: time.Second, Logger: quiet()})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if got := invoke(t, ctx, h, event(change{seq: 1})); got != failsFrom(1) {
			t.Errorf("answer %s", got)
		}
		if want := 29500 * time.Millisecond; ended != want {
			t.Errorf("cancelled after %v, want %v", ended, want)
		}
	})
}

// A handler that runs when the margin begins and ends well before handlers are
// cancelled counts as done.
func TestRunningHandlersMayFinishInTheMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(one(func(context.Context, *sluice.Record) error {
			time.Sleep(8500 * time.Millisecond)
			return nil
		}), Options{Margin: 2 * time.Second, Logger: quiet()})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if got := invoke(t, ctx, h, event(change{seq: 1}, change{seq: 2})); got != failsFrom(2) {
			t.Errorf("answer %s", got)
		}
	})
}

func TestNothingStartsAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen recorder
		h := NewHandler(one(func(_ context.Context, rec *sluice.Record) error {
			seen.add(short(string(rec.Sequence)))
			return nil
		}), Options{Logger: quiet()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.Sleep(time.Second)
		if got := invoke(t, ctx, h, event(change{seq: 1}, change{seq: 2})); got != failsFrom(1) {
			t.Errorf("answer %s", got)
		}
		if got := seen.take(); got != nil {
			t.Errorf("handled %v", got)
		}
	})
}

// A handler that ignores its context does not keep the answer from going out;
// the next invocation waits for it, so that its item's changes stay in order.
func TestNextInvocationWaitsForAHandlerLeftRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen recorder
		slow := true
		h := NewHandler(one(func(_ context.Context, rec *sluice.Record) error {
			seen.add("start " + short(string(rec.Sequence)))
			if slow {
				slow = false
				time.Sleep(12 * time.Second)
			}
			seen.add("end " + short(string(rec.Sequence)))
			return nil
		}), Options{Margin: 2 * time.Second, Logger: quiet()})
		batch := event(change{seq: 1}, change{seq: 2})

		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		got := invoke(t, ctx, h, batch)
		cancel()
		if got != failsFrom(1) {
			t.Errorf("answer %s", got)
		}
		if took := time.Since(begin); took > 9500*time.Millisecond {
			t.Errorf("answered after %v, want before the deadline", took)
		}
		if want := []string{"start 1"}; !slices.Equal(seen.take(), want) {
			t.Errorf("want %v", want)
		}

		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if got := invoke(t, ctx, h, batch); got != allDone {
			t.Errorf("answer %s", got)
		}
		if len(h.(*handler).left.flows) != 0 {
			t.Error("the flow of the first invocation is kept")
		}
		want := []string{"end 1", "start 1", "end 1", "start 2", "end 2"}
		if got := seen.take(); !slices.Equal(got, want) {
			t.Errorf("handled %v, want %v", got, want)
		}
	})
}

// A handler that never returns ends the process, and the batch is reported as failed.
func TestStuckHandlerEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := NewHandler(one(func(context.Context, *sluice.Record) error {
			<-release
			return nil
		}), Options{Logger: quiet()})
		batch := event(change{seq: 1})
		for i, want := range []time.Duration{2750 * time.Millisecond, 1500 * time.Millisecond, 1500 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			begin := time.Now()
			answer, err := h.Invoke(ctx, batch)
			if took := time.Since(begin); took != want {
				t.Errorf("invocation %d took %v, want %v", i+1, took, want)
			}
			cancel()
			if i == 0 {
				if err != nil || string(answer) != failsFrom(1) {
					t.Errorf("answer %s, error %v", answer, err)
				}
				continue
			}
			var e messages.InvokeResponse_Error
			if !errors.As(err, &e) || !e.ShouldExit || e.Type != "StuckHandler" {
				t.Errorf("error %v, want one that ends the process", err)
			}
		}
		close(release)
		synctest.Wait()
		if got := invoke(t, t.Context(), h, batch); got != allDone {
			t.Errorf("answer %s", got)
		}
	})
}
