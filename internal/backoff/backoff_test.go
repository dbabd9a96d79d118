package backoff

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestDoubled(t *testing.T) {
	for _, tt := range []struct {
		n    int
		want time.Duration
	}{{-1, 100}, {0, 100}, {1, 200}, {3, 800}, {4, 1000}, {62, 1000}, {63, 1000}, {math.MaxInt, 1000}} {
		if got := Doubled(100, 1000, tt.n); got != tt.want {
			t.Errorf("%d times: %d, want %d", tt.n, got, tt.want)
		}
	}
}

func TestFull(t *testing.T) {
	for n := 1; n < 20; n++ {
		most := time.Duration(0)
		for range 1000 {
			d := Full(100, 1000, n)
			if d < 1 || d > Doubled(100, 1000, n-1) {
				t.Fatalf("try %d: %d", n, d)
			}
			most = max(most, d)
		}
		if most < Doubled(100, 1000, n-1)/2 {
			t.Errorf("try %d waits for %d at most", n, most)
		}
	}
}

func TestHalf(t *testing.T) {
	for n := 1; n < 20; n++ {
		most := Doubled(100, 1000, n-1)
		least := most
		for range 1000 {
			d := Half(100, 1000, n)
			if d < most/2 || d > most {
				t.Fatalf("try %d: %d", n, d)
			}
			least = min(least, d)
		}
		if least > most*3/4 {
			t.Errorf("try %d waits for %d at least", n, least)
		}
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Sleep(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Error(err, time.Since(began))
		}
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if err := Sleep(ctx, time.Minute); !errors.Is(err, cause) {
			t.Error(err)
		}
		if err := Sleep(ctx, 0); !errors.Is(err, cause) {
			t.Error(err)
		}
		if err := Sleep(t.Context(), 0); err != nil {
			t.Error(err)
		}
	})
}

func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if Within(ctx, time.Minute) || time.Since(began) != 0 {
			t.Errorf("it waited for %v", time.Since(began))
		}
		if !Within(ctx, time.Second) || time.Since(began) != time.Second {
			t.Errorf("it waited for %v", time.Since(began))
		}
		if !Within(t.Context(), time.Hour) {
			t.Error("there is no deadline")
		}
	})
}
