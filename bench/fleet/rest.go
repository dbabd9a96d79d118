//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/backoff"
)

// memoryAfter is how long a worker has rested when its memory is looked at.
const memoryAfter = 15 * time.Second

// atRest counts the requests of a worker with one shard, and of four, side by side.
func (b *bench) atRest(ctx context.Context) error {
	var one, four float64
	measure := func(n int, into *float64) func(context.Context, *fleet) error {
		return func(ctx context.Context, f *fleet) error {
			equally, err := f.share(ctx, n)
			if err != nil {
				return err
			}
			if !equally {
				b.logf("%d workers do not share the shards equally", n)
			}
			*into, err = f.requests(ctx, restTime)
			return err
		}
	}
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() { errs[0] = b.with(ctx, 1, measure(1, &one)) })
	both.Go(func() { errs[1] = b.with(ctx, shards, measure(workers, &four)) })
	both.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	fmt.Printf("cost fleet_state_requests_min %.0f\n", one)
	fmt.Printf("cost fleet_state_requests4_min %.0f\n", four)
	return nil
}

// requests returns the requests to the state table a minute.
func (f *fleet) requests(ctx context.Context, during time.Duration) (perMinute float64, err error) {
	counted := func() (n int) {
		for _, w := range f.workers {
			n += w.State.Counts().Requests
		}
		return n
	}
	before, begin := counted(), time.Now()
	if err := backoff.Sleep(ctx, during); err != nil {
		return 0, err
	}
	return float64(counted()-before) / time.Since(begin).Minutes(), nil
}

// memory looks at a worker with many shards.
func (b *bench) memory(ctx context.Context) error {
	return b.with(ctx, manyShards, func(ctx context.Context, f *fleet) error {
		if _, err := f.share(ctx, 1); err != nil {
			return err
		}
		if err := backoff.Sleep(ctx, memoryAfter); err != nil {
			return err
		}
		now, err := local.Memory(f.workers[0].Pid())
		if err != nil {
			return err
		}
		fmt.Printf("cost fleet_rss_mb %.1f\n", now/1e6)
		return nil
	})
}
