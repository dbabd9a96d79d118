//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/fleettest"
)

// scale has three workers join one that has all shards.
func (b *bench) scale(ctx context.Context) error {
	var took []float64
	for range b.rounds {
		if err := b.with(ctx, shards, func(ctx context.Context, f *fleet) error {
			begin, err := f.join(ctx)
			took = append(took, time.Since(begin).Seconds())
			return err
		}); err != nil {
			return err
		}
	}
	fmt.Printf("cost fleet_scale_out_s %.2f\n", local.Median(took))
	b.logf("%d shards were balanced in %.2f s", shards, took)
	return nil
}

// join has one worker read all shards and three others join it, and waits for balance.
// It returns when they were started.
func (f *fleet) join(ctx context.Context) (begin time.Time, err error) {
	if _, err := f.share(ctx, 1); err != nil {
		return begin, err
	}
	begin = time.Now()
	if err := f.add(ctx, workers-1); err != nil {
		return begin, err
	}
	return begin, f.balanced(ctx, 1)
}

const (
	busyShards = 64
	// busyEvery is the time between two records of a shard. It is less than the
	// poller's own interval.
	busyEvery = 100 * time.Millisecond
)

// handoff does the same while all shards are written.
func (b *bench) handoff(ctx context.Context) error {
	var gaps []float64
	for range b.rounds {
		if err := b.with(ctx, busyShards, func(ctx context.Context, f *fleet) error {
			stop := f.keepWriting(ctx)
			_, err := f.join(ctx)
			stop()
			if err == nil {
				err = f.handled(ctx)
			}
			found := gapsOf(f.Effects.All(0))
			b.logf("%d shards were handed over", len(found))
			gaps = append(gaps, found...)
			return err
		}); err != nil {
			return err
		}
	}
	if len(gaps) == 0 {
		return errors.New("no shard had another owner")
	}
	slices.Sort(gaps)
	fmt.Printf("cost fleet_handoff_gap_ms %.0f\n", local.Percentile(gaps, 99))
	b.logf("%d gaps: %.0f ms at the median, %.0f at most", len(gaps), local.Percentile(gaps, 50), gaps[len(gaps)-1])
	return nil
}

// keepWriting writes to each shard every busyEvery, in turns, until stop is called.
func (f *fleet) keepWriting(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var writing sync.WaitGroup
	writing.Go(func() {
		for begin, n := time.Now(), 0; ; n++ {
			at := begin.Add(busyEvery * time.Duration(n) / time.Duration(len(f.items)))
			if backoff.Sleep(ctx, time.Until(at)) != nil {
				return
			}
			f.Write(f.items[n%len(f.items)])
		}
	})
	return func() { cancel(); writing.Wait() }
}

// gapsOf returns the times, in ms, between the last effect of an item from one worker
// and the first of its next version from another.
func gapsOf(effects []fleettest.Effect) (gaps []float64) {
	last := make(map[string]fleettest.Effect)
	for _, e := range effects {
		if e.Repeated {
			continue
		}
		if was, ok := last[e.Item]; ok && was.Worker != e.Worker {
			gaps = append(gaps, float64(e.At.Sub(was.At).Microseconds())/1000)
		}
		last[e.Item] = e
	}
	return gaps
}
