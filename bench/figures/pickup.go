//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluicehq/sluice/bench/figures/tell"
	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/parallel"
	"github.com/sluicehq/sluice/sources/poller"
)

const (
	pickupTables = 20
	writes       = 30 // to each table
	writeEvery   = 2 * time.Second
	jitter       = 200 * time.Millisecond
)

// pickupFigures writes to several tables of one shard each, every 2 s, and
// measures when one daemon handles the records.
func (b *bench) pickupFigures(ctx context.Context) error {
	tables := make([]string, pickupTables)
	for i := range tables {
		tables[i] = fmt.Sprintf("pickup-%d", i)
		if err := b.service.createTable(ctx, tables[i]); err != nil {
			return err
		}
		if _, err := b.service.enableStream(ctx, tables[i]); err != nil {
			return err
		}
	}
	d, err := b.daemon(ctx, "pickup", poller.TrimHorizon, tell.EnvEach+"=1", tables...)
	if err != nil {
		return err
	}
	defer d.Kill()

	// A record of each shard, so that all are read and busy.
	for i, table := range tables {
		if err := b.service.put(ctx, table, i); err != nil {
			return err
		}
	}
	for range tables {
		if _, err := d.next(ctx, patience); err != nil {
			return err
		}
	}
	if err := b.write(ctx, tables, writes); err != nil {
		return err
	}
	var latencies []float64
	for range writes * len(tables) {
		l, err := d.next(ctx, patience)
		if err != nil {
			return fmt.Errorf("%d of %d records were handled: %w", len(latencies), writes*len(tables), err)
		}
		latencies = append(latencies, float64(l.At-l.Sent)/1e6)
	}
	if err := d.stop(); err != nil {
		return err
	}
	slices.Sort(latencies)
	fmt.Printf("cost pickup_p50_ms %.1f\n", local.Percentile(latencies, 50))
	fmt.Printf("cost pickup_p99_ms %.1f\n", local.Percentile(latencies, 99))
	b.logf("%d writes to %d tables, every %v each; from %.1f to %.1f ms", len(latencies), len(tables), writeEvery, latencies[0], latencies[len(latencies)-1])
	return nil
}

// write makes the writes to all tables. They come at moments that are spread
// evenly over the interval between two polls.
func (b *bench) write(ctx context.Context, tables []string, writes int) error {
	const golden = math.Phi - 1
	begin := time.Now()
	errs := make([]error, len(tables))
	parallel.Do(len(tables), len(tables), func(i int) {
		for n := range writes {
			_, spread := math.Modf(float64(i*writes+n) * golden)
			at := begin.Add(time.Duration(n)*writeEvery + writeEvery*time.Duration(i)/time.Duration(len(tables)) +
				time.Duration(spread*float64(jitter)))
			if backoff.Sleep(ctx, time.Until(at)) != nil {
				return
			}
			if errs[i] = b.service.put(ctx, tables[i], n); errs[i] != nil {
				return
			}
		}
	})
	return errors.Join(append(errs, ctx.Err())...)
}
