//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sluicehq/sluice/bench/figures/tell"
	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/sources/poller"
)

// idleFor is how long a daemon has had nothing to do when its memory is looked
// at.
const idleFor = 2 * time.Second

const starts = 7 // of each kind

// startFigures starts a daemon without a state file and again with it, on a
// table of its own each time.
func (b *bench) startFigures(ctx context.Context) error {
	var cold, again, idle []float64
	for i := range starts + 1 {
		table := fmt.Sprintf("start-%d", i)
		if err := b.service.createTable(ctx, table); err != nil {
			return err
		}
		if _, err := b.service.enableStream(ctx, table); err != nil {
			return err
		}
		took, _, err := b.startOnce(ctx, table, poller.TrimHorizon, 2*i, 0)
		if err != nil {
			return err
		}
		tookAgain, rss, err := b.startOnce(ctx, table, "", 2*i+1, idleFor)
		if err != nil {
			return err
		}
		if err := os.Remove(b.path(table)); err != nil {
			return err
		}
		if i == 0 { // the server was cold
			continue
		}
		cold, again, idle = append(cold, took.Seconds()), append(again, tookAgain.Seconds()), append(idle, rss)
	}
	fmt.Printf("cost start_cold_s %.3f\n", local.Median(cold))
	fmt.Printf("cost start_again_s %.3f\n", local.Median(again))
	fmt.Printf("cost rss_idle_mb %.1f\n", local.Median(idle)/1e6)
	b.logf("%d starts: cold %.3f to %.3f s, again %.3f to %.3f s", len(cold), slices.Min(cold), slices.Max(cold), slices.Min(again), slices.Max(again))
	return nil
}

// startOnce writes a record, starts a daemon, and returns how long it took to
// handle it, and its memory after a while.
func (b *bench) startOnce(ctx context.Context, table, start string, i int, idle time.Duration) (took time.Duration, rss float64, err error) {
	if err := b.service.put(ctx, table, i); err != nil {
		return 0, 0, err
	}
	d, err := b.daemon(ctx, table, start, tell.EnvEach+"=1", table)
	if err != nil {
		return 0, 0, err
	}
	defer d.Kill()
	l, err := d.next(ctx, patience)
	if err != nil {
		return 0, 0, err
	}
	took = time.Unix(0, l.At).Sub(d.began)
	if idle > 0 {
		time.Sleep(idle)
		if rss, err = local.Memory(d.Pid()); err != nil {
			return 0, 0, err
		}
	}
	if err := d.stop(); err != nil {
		return 0, 0, err
	}
	if l, more := <-d.lines; more {
		return 0, 0, fmt.Errorf("table %s: a second record was handled, written at %v", table, time.Unix(0, l.Sent))
	}
	return took, rss, nil
}
