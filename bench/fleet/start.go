//go:build unix

package main

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice/bench/local"
)

// start starts a worker that nobody knows, and another after its orderly end. Records
// wait in every shard.
func (b *bench) start(ctx context.Context) error {
	var first, again []float64
	for range b.rounds {
		if err := b.with(ctx, shards, func(ctx context.Context, f *fleet) error {
			for _, took := range []*[]float64{&first, &again} {
				begun, err := f.begin(ctx)
				if err != nil {
					return err
				}
				*took = append(*took, begun)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	fmt.Printf("cost fleet_start_s %.3f\n", local.Median(first))
	fmt.Printf("cost fleet_start_again_s %.3f\n", local.Median(again))
	b.logf("first starts: %.2f s; after an orderly end: %.2f s", first, again)
	return nil
}

// begin runs a worker until it has handled a record of each shard, and returns how long
// the first took.
func (f *fleet) begin(ctx context.Context) (took float64, err error) {
	before := f.Effects.Len()
	for _, name := range f.items {
		f.Write(name)
	}
	w, err := f.Start(ctx, f.patience)
	if err != nil {
		return 0, err
	}
	if err := f.handled(ctx); err != nil {
		return 0, w.Failure(err)
	}
	return f.Effects.All(before)[0].At.Sub(w.Began).Seconds(), w.Stop()
}
