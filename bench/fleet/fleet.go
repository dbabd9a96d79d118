//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/fleettest"
	"github.com/sluicehq/sluice/internal/parallel"
)

// restAfter is how long after its last record a fleet is at rest: more than the time
// between two writes of positions.
const restAfter = 3 * time.Second

// fleet is the workers of one measurement.
type fleet struct {
	*fleettest.Fleet
	items    []string // one of each shard
	workers  []*fleettest.Worker
	patience time.Duration
}

// add starts n workers at the same time.
func (f *fleet) add(ctx context.Context, n int) error {
	added, errs := make([]*fleettest.Worker, n), make([]error, n)
	parallel.Do(n, n, func(i int) { added[i], errs[i] = f.Start(ctx, f.patience) })
	f.workers = append(f.workers, added...)
	return errors.Join(errs...)
}

// await waits until missing, which says what is not ready yet, returns "".
func (f *fleet) await(ctx context.Context, missing func() (string, error)) error {
	for begin := time.Now(); ; {
		what, err := missing()
		if err != nil || what == "" {
			return err
		}
		if waited := time.Since(begin); waited > f.patience {
			return fmt.Errorf("after %.0f s: %s", waited.Seconds(), what)
		}
		if err := backoff.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// handled waits for the effects of everything that was written.
func (f *fleet) handled(ctx context.Context) error {
	written := f.Written()
	return f.await(ctx, func() (string, error) {
		if n := f.Effects.Missing(written); n > 0 {
			return fmt.Sprintf("%d records are not handled", n), nil
		}
		return "", nil
	})
}

// work writes an item of each shard and waits for the effects.
func (f *fleet) work(ctx context.Context) error {
	for _, name := range f.items {
		f.Write(name)
	}
	return f.handled(ctx)
}

// balanced waits until all shards are read, and the workers' numbers of them differ by
// at most the given number.
func (f *fleet) balanced(ctx context.Context, by int) error {
	return f.await(ctx, func() (string, error) {
		counts, err := f.counts(ctx)
		if err != nil {
			return "", err
		}
		sum := 0
		for _, n := range counts {
			sum += n
		}
		if sum == len(f.items) && slices.Max(counts)-slices.Min(counts) <= by {
			return "", nil
		}
		return fmt.Sprintf("the workers read %v of %d shards", counts, len(f.items)), nil
	})
}

// share starts workers at the same time, has them handle a record of each shard, and
// waits until they rest. It reports false if they do not share the shards equally.
func (f *fleet) share(ctx context.Context, workers int) (equally bool, err error) {
	for _, step := range []func() error{
		func() error { return f.add(ctx, workers) },
		func() error { return f.balanced(ctx, len(f.items)) },
		func() error { return f.work(ctx) },
	} {
		if err := step(); err != nil {
			return false, err
		}
	}
	equally = f.balanced(ctx, 1) == nil
	return equally, backoff.Sleep(ctx, restAfter)
}

// counts returns how many shards each worker reads.
func (f *fleet) counts(ctx context.Context) ([]int, error) {
	n := len(f.workers)
	counts, errs := make([]int, n), make([]error, n)
	parallel.Do(n, n, func(i int) { counts[i], errs[i] = f.workers[i].Shards(ctx) })
	return counts, errors.Join(errs...)
}
