//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sluicehq/sluice/bench/figures/tell"
	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/sources/poller"
)

// restAfter is how long a drained daemon has had nothing to do when its memory
// is looked at.
const restAfter = 2 * time.Second

const records = 100_000 // in the backlog, a multiple of keys

// drained is one program's reading of the backlog.
type drained struct {
	took, cpu float64 // seconds; from the end of the first page to the last record, and in all
	rss       float64 // bytes; of the daemon
}

// drainFigures writes the backlog and has the programs read it. Reader and
// daemon take turns within each round so that a machine which becomes slower or
// faster meanwhile favours none; the loop, whose CPU time alone counts, reads
// it in every other round.
func (b *bench) drainFigures(ctx context.Context) error {
	const table = "drain"
	stream, err := b.backlog(ctx, table)
	if err != nil {
		return err
	}
	var speed, cpu, loopCPU, rss []float64
	for round := range b.rounds {
		took := make(map[string]float64)
		for i, name := range []string{"raw", "daemon", "daemon", "raw", "loop"} {
			if name == "loop" && round%2 == 1 {
				continue
			}
			d, err := b.drain(ctx, name, table, stream, fmt.Sprintf("drain-%d-%d", round, i))
			if err != nil {
				return err
			}
			took[name] += d.took
			switch name {
			case "daemon":
				cpu, rss = append(cpu, d.cpu), append(rss, d.rss)
				b.logf("daemon: %.2f s, CPU %.2f s, memory %.1f MB", d.took, d.cpu, d.rss/1e6)
			case "loop":
				loopCPU = append(loopCPU, d.cpu)
				b.logf("loop: %.2f s, CPU %.2f s", d.took, d.cpu)
			case "raw":
				b.logf("raw: %.2f s, CPU %.2f s", d.took, d.cpu)
			}
		}
		speed = append(speed, took["raw"]/took["daemon"])
	}
	fmt.Printf("ratio drain_vs_raw %.2f\n", local.Median(speed))
	fmt.Printf("cost drain_cpu_s %.2f\n", local.Median(cpu))
	fmt.Printf("ratio drain_cpu_vs_loop %.1f\n", local.Median(loopCPU)/local.Median(cpu))
	fmt.Printf("cost rss_drained_mb %.1f\n", local.Median(rss)/1e6)
	slices.Sort(speed)
	b.logf("throughput beside raw from %.2f to %.2f", speed[0], speed[len(speed)-1])
	return nil
}

// backlog writes a table's items, gives it a stream, and changes each item over
// and over.
func (b *bench) backlog(ctx context.Context, table string) (stream string, err error) {
	begin := time.Now()
	if err := b.service.createTable(ctx, table); err != nil {
		return "", err
	}
	if err := b.service.fill(ctx, table, 0, 1); err != nil {
		return "", err
	}
	if stream, err = b.service.enableStream(ctx, table); err != nil {
		return "", err
	}
	if err := b.service.fill(ctx, table, 1, 1+records/keys); err != nil {
		return "", err
	}
	b.logf("backlog written in %.1f s", time.Since(begin).Seconds())
	return stream, nil
}

// drain has one program read the backlog.
func (b *bench) drain(ctx context.Context, name, table, stream, state string) (d drained, err error) {
	records := fmt.Sprintf("%s=%d", tell.EnvRecords, records)
	var c *child
	if name == "daemon" {
		c, err = b.daemon(ctx, state, poller.TrimHorizon, records, table)
	} else {
		c, err = b.start(ctx, name, []string{records, tell.EnvStream + "=" + stream}, nil)
	}
	if err != nil {
		return d, err
	}
	defer c.Kill()
	l, err := c.next(ctx, drainTime)
	if err != nil {
		return d, err
	}
	if l.Drained == nil {
		return d, c.Failure(errors.New("a report of something else"))
	}
	d.took = time.Duration(l.Drained.Last - l.Drained.First).Seconds()
	d.cpu = time.Duration(l.Drained.CPU).Seconds()
	if name == "daemon" {
		time.Sleep(restAfter)
		if d.rss, err = local.Memory(c.Pid()); err != nil {
			return d, err
		}
		defer os.Remove(b.path(state)) //nolint:errcheck // in a temporary folder
	}
	return d, c.stop()
}
