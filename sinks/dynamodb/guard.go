package dynamodb

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/outcomes"
	"github.com/sluicehq/sluice/internal/parallel"
)

// DeleteGuarded deletes items that a guard may still spare, with up to InFlight
// concurrent requests; see [dynamo.GuardedDelete]. Without a condition it is
// [Store.DeleteAll] with a guard. With one, each item is a DeleteItem request,
// unordered with other writes of its key.
func (s *Store) DeleteGuarded(ctx context.Context, d dynamo.GuardedDelete) {
	g := &guard{may: d.Guard}
	if d.Condition == "" {
		s.writeAll(ctx, d.Table, d.Keys, s.newDelete, g, d.Done)
		return
	}
	parallel.Do(len(d.Keys), s.opt.InFlight, func(i int) {
		var errs []error
		if err := s.writeGuarded(ctx, d.Op(d.Keys[i]), g); err != nil {
			errs = []error{err}
		}
		d.Done(d.Keys[i:i+1], errs)
	})
}

// guard is the Guard of one call. The nil guard permits everything.
type guard struct {
	may     func(context.Context) error
	refused atomic.Pointer[error] // error of the first request that it stopped
}

// ask asks whether a request may be sent now; refusal has the answer. A panic
// counts as a refusal, because it must not end another caller's goroutine.
func (g *guard) ask(ctx context.Context) {
	if g == nil || g.refusal() != nil {
		return
	}
	if err := <-outcomes.Go(func() error { return g.may(ctx) }); err != nil {
		err = fmt.Errorf("not sent: %w", err)
		g.refused.CompareAndSwap(nil, &err)
	}
}

// refusal returns the error of a guard that has stopped a request.
func (g *guard) refusal() error {
	if g == nil {
		return nil
	}
	if err := g.refused.Load(); err != nil {
		return *err
	}
	return nil
}

// promptly is the longest time for the guards of one request together. After that
// the first answers are old, and all guards are asked again.
const promptly = 20 * time.Millisecond

// allowed asks the guards of writes right before the request, and returns the
// permitted writes. The others get their guard's error and return their part of
// the estimate.
func (c *committing) allowed(ctx context.Context, open []int, estimate units) ([]int, units) {
	var guards []*guard
	for _, i := range open {
		if g := c.writes[i].guard; g != nil && !slices.Contains(guards, g) {
			guards = append(guards, g)
		}
	}
	if len(guards) == 0 {
		return open, estimate
	}
	askAll(ctx, guards)
	var back, rest []int
	for _, i := range open {
		if err := c.writes[i].guard.refusal(); err != nil {
			back = append(back, i)
			c.errs[i] = &tableError{c.writes[i].table, err}
		} else {
			rest = append(rest, i)
		}
	}
	if len(back) == 0 {
		return open, estimate
	}
	c.store.settle(c.estimate(back), nil)
	return rest, c.estimate(rest)
}

// askAll asks guards concurrently, until all answers are fresh.
func askAll(ctx context.Context, guards []*guard) {
	for len(guards) > 0 {
		began := time.Now()
		var wg sync.WaitGroup
		for _, g := range guards[1:] {
			wg.Go(func() { g.ask(ctx) })
		}
		guards[0].ask(ctx)
		wg.Wait()
		if len(guards) == 1 || time.Since(began) < promptly || ctx.Err() != nil {
			return
		}
	}
}
