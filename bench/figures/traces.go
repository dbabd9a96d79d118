//go:build unix

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/tracing"
)

const tracedPages = 100 // of 1000 records

// traceFigures runs records through a flow without a Tracer, with one that samples
// nothing, and with one that samples every record, in turns.
func (b *bench) traceFigures(ctx context.Context) error {
	// Nobody listens at the address: what is sampled is dropped.
	if err := os.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"); err != nil {
		return err
	}
	tracers := []flow.Tracer{nil}
	for _, sampler := range []string{"always_off", "always_on"} {
		if err := os.Setenv("OTEL_TRACES_SAMPLER", sampler); err != nil {
			return err
		}
		t, err := tracing.Start(ctx, tracing.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		ended, end := context.WithCancel(ctx)
		end()
		defer t.Stop(ended) //nolint:errcheck // nobody listens
		tracers = append(tracers, t)
	}
	costs := make([][]float64, len(tracers))
	for range 2*b.rounds + 1 {
		for i, t := range tracers {
			ns, err := flowCost(ctx, t)
			if err != nil {
				return err
			}
			costs[i] = append(costs[i], ns)
		}
	}
	off, out, in := local.Median(costs[0]), local.Median(costs[1]), local.Median(costs[2])
	fmt.Printf("cost trace_ns %.0f\n", out-off)
	fmt.Printf("cost trace_sampled_ns %.0f\n", in-off)
	b.logf("a record takes %.0f ns untraced, %.0f ns sampled out, %.0f ns sampled", off, out, in)
	return nil
}

// flowCost returns the CPU time of a record, in nanoseconds.
func flowCost(ctx context.Context, t flow.Tracer) (float64, error) {
	r := router.New()
	r.Handle("*#*", func(context.Context, *sluice.Record) error { return nil })
	hooks := flow.Hooks{Handled: func(context.Context, *sluice.Record, *sluice.Route, flow.Result, time.Duration, error) {}, Tracer: t}
	f := flow.Open(ctx, r, flow.Options{Hooks: hooks, Logger: slog.New(slog.DiscardHandler)})
	recs := make([]sluice.Record, 1000)
	for i := range recs {
		keys := item.Of(item.String("pk", strconv.Itoa(i)))
		recs[i] = sluice.Record{EventID: strconv.Itoa(i), EventName: sluice.Modify, Table: "orders", ShardID: "shard", Keys: keys, New: keys, SizeBytes: 100}
	}
	begin := local.CPU()
	for range tracedPages {
		if _, err := f.Submit(ctx, append([]sluice.Record(nil), recs...)...); err != nil {
			return 0, err
		}
	}
	if _, err := f.Close(ctx); err != nil {
		return 0, err
	}
	return float64(local.CPU()-begin) / float64(tracedPages*len(recs)), nil
}
