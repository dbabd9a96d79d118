package opensearch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/effect/document"
)

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimit(8)
		once := func(took time.Duration, overloaded bool) int {
			if err := l.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			time.Sleep(took)
			l.leave(start, overloaded)
			return int(l.allowed)
		}
		for range 5 {
			if n := once(time.Second, false); n != 8 {
				t.Errorf("%d, want all", n)
			}
		}
		if n := once(time.Second, true); n != 5 {
			t.Errorf("%d after one refusal, want two thirds", n)
		}
		if n := once(5*time.Second, false); n != 3 {
			t.Errorf("%d after a slow one", n)
		}
		for range 10 {
			once(time.Second, true)
		}
		if n := once(time.Second, true); n != 1 {
			t.Errorf("%d, want one at least", n)
		}
		n, rounds := 1, 0
		for ; n < 8; rounds++ {
			n = once(time.Second, false)
		}
		if rounds < 50 || rounds > 80 {
			t.Errorf("%d successes from 1 to 8", rounds)
		}
	})
}

// Refusals of requests that ran side by side are one sign.
func TestLimitIsLoweredOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimit(8)
		start := time.Now()
		for range 8 {
			if err := l.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		for range 8 {
			l.leave(start, true)
			if n := int(l.allowed); n != 5 {
				t.Errorf("%d, want 5", n)
			}
		}
	})
}

func TestLimitAndBudgetLetOthersInWhenOneGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, b := newLimit(1), newBudget(10)
		cause := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		if err := l.enter(ctx); err != nil {
			t.Fatal(err)
		}
		if n, err := b.take(ctx, 99); n != 10 || err != nil {
			t.Fatal(n, err)
		}
		go func() {
			if err := l.enter(ctx); !errors.Is(err, cause) {
				t.Error(err)
			}
		}()
		go func() {
			if _, err := b.take(ctx, 10); !errors.Is(err, cause) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		entered := 0
		go func() { _ = l.enter(t.Context()); entered++ }()
		go func() { _, _ = b.take(t.Context(), 10); entered++ }()
		synctest.Wait()
		cancel(cause)
		synctest.Wait()
		if entered != 0 {
			t.Error("let in without room")
		}
		l.leave(time.Now(), false)
		synctest.Wait()
		b.give(10)
		synctest.Wait()
		if entered != 2 || l.running != 1 || b.free.TryAcquire(1) {
			t.Errorf("%d let in, %d running", entered, l.running)
		}
	})
}

// An overloaded cluster gets fewer requests at a time, and everything is
// written all the same.
func TestRequestsFollowTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{delay: 100 * time.Millisecond}
		overloaded := 0
		c.request = func(int, []string) *reply {
			if c.running > 2 {
				overloaded++
				return &reply{status: 429}
			}
			return nil
		}
		s := c.sink(t, Options{MaxItems: 1, InFlight: 8, Timeout: time.Hour})
		var ops []document.Op
		for i := range 300 {
			ops = append(ops, put("i", string(rune('a'+i)), "{}"))
		}
		if errs := writeAll(t, s, ops...); errs != nil {
			t.Error(errs)
		}
		if overloaded == 0 || overloaded > 200 || c.most > 8 {
			t.Errorf("%d of %d requests were too many, at most %d at a time", overloaded, len(c.requests), c.most)
		}
	})
}

// Waiting bytes are bounded. A caller without room returns an error.
func TestWaitBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{delay: time.Second}
		s := c.sink(t, Options{WaitBytes: 100})
		go func() { _ = s.Write(t.Context(), put("i", "a", "{}")) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := s.Write(ctx, put("i", "b", "{}"))
		var e *document.Error
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &e) || e.Ref.ID != "b" {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		expectFree(t, s)
	})
}
