package flow

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// Poison that nobody takes is tried at the pace of any other failure.
func TestPoisonWithoutDeadLettersKeepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		f := Open(ctx, routes(func(_ context.Context, r *sluice.Record) error {
			if keyOf(r) != "bad" {
				return nil
			}
			calls.Add(1)
			return errDown
		}), Options{Logger: quiet})
		mustSubmit(t, f, rec("bad", 1))
		for i := range 20 * 60 {
			mustSubmit(t, f, rec(fmt.Sprint("good", i%100), i+2))
			time.Sleep(time.Second)
		}
		if n := calls.Load(); n < 60 || n > 300 {
			t.Errorf("%d calls in 20 minutes", n)
		}
		cancel()
		_, _ = f.Close(t.Context())
	})
}
