//go:build unix

// Command fleet measures daemons that share a state table, and prints one line each:
//
//	cost fleet_start_s <s>             from exec to the first record handled, of a new application
//	cost fleet_start_again_s <s>       the same after an orderly end
//	cost fleet_takeover_s <s>          from kill -9 of one of 4 workers, the one with most shards, to
//	                                   the first record of the last of its shards
//	cost fleet_scale_out_s <s>         from exec of 3 more workers beside one, until the numbers of
//	                                   their shards differ by one at most
//	cost fleet_handoff_gap_ms <ms>     from the last record of a shard's old owner to the first of its
//	                                   new one meanwhile, while every shard is written; 99th percentile
//	cost fleet_state_requests_min <n>  requests to the state table a minute: one worker, one shard, at rest
//	cost fleet_state_requests4_min <n> of 4 workers and all shards, at rest
//	cost fleet_rss_mb <MB>             resident memory of one worker with 1,000 shards
//
// The workers are processes of sluice run with default settings. Their stream is
// streamtest's, their state is in DynamoDB Local, and each sends a message for each
// record to a queue of this program. A figure is the median of the rounds unless it says
// otherwise. The whole takes less than five minutes on two idle processors.
//
// A figure that cannot be measured, because what it waits for does not happen in time,
// is left out. The others are measured, and the command fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/fleettest"
	"github.com/sluicehq/sluice/internal/localstack"
)

func main() {
	var b bench
	flag.BoolVar(&b.verbose, "v", false, "print what is behind the figures too")
	flag.IntVar(&b.rounds, "rounds", 3, "of each measurement but those at rest")
	only := flag.String("only", "", "measure only `start`, takeover, scale, handoff, rest or memory")
	local.Main("fleet", func(ctx context.Context) error { return b.run(ctx, *only) })
}

const (
	workers    = 4                // share the stream
	shards     = 256              // of it
	manyShards = 1000             // of one worker whose memory is measured
	restTime   = time.Minute      // in which requests at rest are counted
	patience   = 20 * time.Second // for workers to share shards, take over or handle records
	coldTime   = time.Minute      // in which a server that was just started is slow
)

// bench is shared by the figures.
type bench struct {
	verbose bool
	rounds  int

	program, dir, dynamoDB string
	fleets                 atomic.Int64 // made so far
}

func (b *bench) run(ctx context.Context, only string) error {
	begin := time.Now()
	parts, err := local.Only(only, []local.Part{
		{Name: "start", Measure: b.start}, {Name: "takeover", Measure: b.takeover}, {Name: "scale", Measure: b.scale},
		{Name: "handoff", Measure: b.handoff}, {Name: "rest", Measure: b.atRest}, {Name: "memory", Measure: b.memory},
	})
	if err != nil {
		return err
	}
	if b.rounds < 1 {
		return fmt.Errorf("-rounds is %d: want 1 at least", b.rounds)
	}
	if b.dir, err = os.MkdirTemp("", "sluice-fleet-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir) //nolint:errcheck // a temporary folder
	b.program = filepath.Join(b.dir, "sluice")
	if err := local.Build(ctx, b.program, "cmd/sluice"); err != nil {
		return err
	}
	stack, err := localstack.Start(ctx, localstack.Options{Log: os.Stderr, NoSQS: true, Benchmark: true})
	if err != nil {
		return err
	}
	defer stack.Stop()
	b.dynamoDB = stack.DynamoDB
	if err := b.with(ctx, shards, func(ctx context.Context, f *fleet) error {
		f.patience = max(f.patience, coldTime)
		_, err := f.share(ctx, 1)
		return err
	}); err != nil {
		return fmt.Errorf("the first worker, on a cold server: %w", err)
	}
	b.logf("server and program ready after %.1f s", time.Since(begin).Seconds())

	var errs []error
	for _, part := range parts {
		since := time.Now()
		if err := part.Measure(ctx); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			errs = append(errs, fmt.Errorf("%s: %w", part.Name, err))
		}
		b.logf("%s took %.1f s", part.Name, time.Since(since).Seconds())
	}
	return errors.Join(errs...)
}

// with measures something of a new fleet.
func (b *bench) with(ctx context.Context, shards int, measure func(context.Context, *fleet) error) error {
	name := fmt.Sprintf("fleet-%d", b.fleets.Add(1))
	dir := filepath.Join(b.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	f, err := fleettest.New(ctx, fleettest.Options{Program: b.program, Dir: dir, DynamoDB: b.dynamoDB, State: name, Shards: shards})
	if err != nil {
		return err
	}
	err = measure(ctx, &fleet{Fleet: f, items: fleettest.OnePerShard(shards), patience: patience})
	return errors.Join(err, f.Close())
}

func (b *bench) logf(format string, args ...any) {
	if b.verbose {
		fmt.Fprintf(os.Stderr, "  "+format+"\n", args...)
	}
}
