//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/bench/local"
)

// takeover kills the worker with the most shards, and writes to all shards at once.
func (b *bench) takeover(ctx context.Context) error {
	var took []float64
	for range b.rounds {
		if err := b.with(ctx, shards, func(ctx context.Context, f *fleet) error {
			if _, err := f.share(ctx, workers); err != nil {
				return err
			}
			counts, err := f.counts(ctx)
			if err != nil {
				return err
			}
			victim := f.workers[slices.Index(counts, slices.Max(counts))]
			before, at := f.Effects.Len(), time.Now()
			if err := victim.Signal(syscall.SIGKILL); err != nil {
				return err
			}
			victim.Kill()
			if err := f.work(ctx); err != nil {
				return err
			}
			last := at
			for _, e := range f.Effects.All(before) {
				if !e.Repeated && e.At.After(last) {
					last = e.At
				}
			}
			took = append(took, last.Sub(at).Seconds())
			b.logf("%d of %d shards were taken over in %.2f s", slices.Max(counts), len(f.items), last.Sub(at).Seconds())
			return nil
		}); err != nil {
			return err
		}
	}
	fmt.Printf("cost fleet_takeover_s %.2f\n", local.Median(took))
	return nil
}
