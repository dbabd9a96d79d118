//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/bench/figures/tell"
	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/sources/poller"
)

const (
	writeEvery = 2 * time.Second
	jitter     = 200 * time.Millisecond
	maxPolls   = 5 // a second and shard
)

// pickupFigures writes to several tables of one shard each, every 2 s, and
// measures when one daemon handles the records.
func (b *bench) pickupFigures(ctx context.Context) error {
	tables := make([]string, b.tables)
	for i := range tables {
		tables[i] = fmt.Sprintf("pickup-%d", i)
		if err := b.service.createTable(ctx, tables[i]); err != nil {
			return err
		}
		if _, err := b.service.enableStream(ctx, tables[i]); err != nil {
			return err
		}
	}
	writes := max(1, int(b.pickup/writeEvery))
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
	metrics, err := d.Address(ctx, patience)
	if err != nil {
		return err
	}
	before, err := polls(ctx, metrics)
	if err != nil {
		return err
	}
	since := time.Now()
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
	after, err := polls(ctx, metrics)
	if err != nil {
		return err
	}
	took := time.Since(since)
	if err := d.stop(); err != nil {
		return err
	}
	rate, err := pollRate(before, after, took)
	if err != nil {
		return err
	}
	slices.Sort(latencies)
	fmt.Printf("cost pickup_p50_ms %.1f\n", local.Percentile(latencies, 50))
	fmt.Printf("cost pickup_p99_ms %.1f\n", local.Percentile(latencies, 99))
	fmt.Printf("cost pickup_polls_per_s %.2f\n", rate)
	b.logf("%d writes to %d tables, every %v each; from %.1f to %.1f ms", len(latencies), len(tables), writeEvery, latencies[0], latencies[len(latencies)-1])
	if rate > maxPolls {
		return fmt.Errorf("a shard was polled %.2f times a second: the figures above are to be had within %d", rate, maxPolls)
	}
	return nil
}

// write makes the writes to all tables. They come at moments that are spread
// evenly over the interval between two polls.
func (b *bench) write(ctx context.Context, tables []string, writes int) error {
	const golden = math.Phi - 1
	begin := time.Now()
	errs := make([]error, len(tables))
	var wg sync.WaitGroup
	for i, table := range tables {
		wg.Go(func() {
			for n := range writes {
				_, spread := math.Modf(float64(i*writes+n) * golden)
				at := begin.Add(time.Duration(n)*writeEvery + writeEvery*time.Duration(i)/time.Duration(len(tables)) +
					time.Duration(spread*float64(jitter)))
				select {
				case <-time.After(time.Until(at)):
				case <-ctx.Done():
					return
				}
				if errs[i] = b.service.put(ctx, table, n); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// polls returns how often the shard of each table was polled.
func polls(ctx context.Context, address string) (map[string]float64, error) {
	text, err := local.Metrics(ctx, address)
	if err != nil {
		return nil, err
	}
	return countPolls(text)
}

// countPolls adds up a table's outcomes in the text of /metrics.
func countPolls(text string) (map[string]float64, error) {
	counts := make(map[string]float64)
	for line := range strings.Lines(text) {
		labels, ok := strings.CutPrefix(line, "sluice_polls_total{")
		if !ok {
			continue
		}
		labels, value, _ := strings.Cut(labels, "} ")
		_, table, _ := strings.Cut(labels, `table="`)
		table, _, _ = strings.Cut(table, `"`)
		n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || table == "" {
			return nil, fmt.Errorf("not a count of a table's polls: %q", line)
		}
		counts[table] += n
	}
	return counts, nil
}

// pollRate returns the polls a second of the table with the most. The first
// poll of a period is at its beginning, where it belongs to no interval.
func pollRate(before, after map[string]float64, period time.Duration) (float64, error) {
	if len(after) == 0 {
		return 0, errors.New("the daemon counts no polls")
	}
	var most float64
	for _, table := range slices.Sorted(maps.Keys(after)) {
		n := after[table] - before[table]
		if n <= 0 {
			return 0, fmt.Errorf("table %s was not polled", table)
		}
		most = max(most, n-1)
	}
	return most / period.Seconds(), nil
}
