package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
)

// DeleteGuarded deletes items that may have to stay after all, up to InFlight
// requests at a time; see [dynamo.GuardedDelete]. Without a condition it is
// [Store.DeleteAll] with a guard. With one, each item is a DeleteItem request, in
// no order with other writes of its key.
func (s *Store) DeleteGuarded(ctx context.Context, d dynamo.GuardedDelete) {
	g := &guard{may: d.Guard}
	if d.Condition == "" {
		s.writeAll(ctx, d.Table, d.Keys, s.newDelete, g, d.Done)
		return
	}
	inParallel(len(d.Keys), s.opt.InFlight, func(i int) {
		var errs []error
		if err := s.writeGuarded(ctx, d.Op(d.Keys[i]), g); err != nil {
			errs = []error{err}
		}
		d.Done(d.Keys[i:i+1], errs)
	})
}

// enterGuarded waits for a request to be free.
func (s *Store) enterGuarded(ctx context.Context) error {
	select {
	case s.guarded <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// guard is the Guard of one call. The nil guard lets everything pass.
type guard struct {
	may     func(context.Context) error
	refused atomic.Pointer[error] // by the first request that it held back
}

// ask asks whether a request may be sent now; refusal has the answer. A panic is a
// refusal: it must not end a goroutine of somebody else's.
func (g *guard) ask(ctx context.Context) {
	if g == nil || g.refusal() != nil {
		return
	}
	err := errGuardEnded
	defer func() {
		if p := recover(); p != nil {
			err = &sluice.PanicError{Value: p, Stack: debug.Stack()}
		}
		if err != nil {
			err = fmt.Errorf("not sent: %w", err)
			g.refused.CompareAndSwap(nil, &err)
		}
	}()
	err = g.may(ctx)
}

var errGuardEnded = errors.New("the guard ended its goroutine")

// refusal is the error of a guard that has held back a request before.
func (g *guard) refusal() error {
	if g == nil {
		return nil
	}
	if err := g.refused.Load(); err != nil {
		return *err
	}
	return nil
}

// promptly is how long the guards of one request may take together. After a longer
// time the first answers are old, and all guards are asked again.
const promptly = 20 * time.Millisecond

// allowed asks the guards of writes that are about to be sent, and returns the
// writes that may be. The others get their guard's error and give back their part
// of the estimate.
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

// askAll asks guards at the same time, until all answers are fresh.
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
