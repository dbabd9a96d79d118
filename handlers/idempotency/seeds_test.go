package idempotency

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// Two workers get the same record many times, die in the middle, fail, and sometimes do
// not reach the table. Both never run the handler at once before its deadline. The
// handler runs in the end, and never after it is marked as done.
func TestSeeds(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			tb := newTable()
			tb.fail = func(dynamo.Op) (before, after error) {
				switch rnd.IntN(6) {
				case 0:
					return errDown, nil
				case 1:
					return nil, errDown
				}
				return nil, nil
			}
			running, effects := 0, 0
			work := func(ctx context.Context) error {
				tb.mu.Lock()
				done := str(tb.rows["mail#test#e-1"], "status") == "COMPLETED"
				running++
				if running > 1 || done {
					t.Errorf("seed %d: %d run, done %v", seed, running, done)
				}
				how, wait := rnd.IntN(4), time.Duration(rnd.IntN(50_000))*time.Millisecond
				tb.mu.Unlock()
				time.Sleep(wait) // shorter than InProgress
				tb.mu.Lock()
				defer tb.mu.Unlock()
				running--
				switch how {
				case 0:
					return errDown
				case 1:
					effects++
					runtime.Goexit() // a crash, but for the claim that is given up
				}
				effects++
				return nil
			}
			settled := make(chan error, 2)
			for range 2 {
				go func() {
					next := tb.wrap(&handler{do: work})
					for {
						var err error
						ended := make(chan bool)
						go func() {
							err = errDown
							defer close(ended)
							err = next(context.Background(), event())
						}()
						<-ended
						if err == nil || sluice.IsSkip(err) {
							settled <- err
							return
						}
						wait := time.Second
						if r, ok := errors.AsType[*outcomes.Retry](err); ok {
							wait = r.After
						}
						if part, ok := errors.AsType[*sluice.Remaining](err); ok {
							next = part.Rest
						} else if sluice.IsPermanent(err) {
							settled <- err
							return
						}
						time.Sleep(wait)
					}
				}()
			}
			for range 2 {
				if err := <-settled; err != nil && !sluice.IsSkip(err) {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
			if effects == 0 || str(tb.rows["mail#test#e-1"], "status") != "COMPLETED" {
				t.Errorf("seed %d: %d effects, %v", seed, effects, tb.rows)
			}
		})
	}
}
