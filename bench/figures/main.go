//go:build unix

// Command figures measures a whole daemon on DynamoDB Local, and the peers
// beside it in the same run, and prints one line each:
//
//	cost start_cold_s <s>            from exec to the first record handled, without a state file
//	cost start_again_s <s>           the same with the state file of an earlier run; a record waits in both
//	cost pickup_p50_ms <ms>          from just before a write to its handler; a write every 2 s
//	cost pickup_p99_ms <ms>
//	cost reload_gap_ms <ms>          from the last message by the old file to the first by the new, under load
//	ratio drain_vs_raw <times>       throughput of a backlog, beside a reader that decodes nothing
//	cost drain_cpu_s <s>             CPU time of the daemon for that backlog, its start included
//	ratio drain_cpu_vs_loop <times>  CPU time of the loop usually written with the SDK, beside the daemon's
//	cost rss_idle_mb <MB>            resident memory of a daemon with one shard and nothing to do
//	cost rss_drained_mb <MB>         resident memory after the backlog
//	cost page_first_paint_ms <ms>    of the page's overview, with 1,000 shards and 10,000 dead letters
//	cost page_daemon_mb <MB>         memory that the daemon takes for one viewer of it
//	cost page_daemon_cpu_percent     of a processor that it takes for that viewer
//	ratio counter_transactions <times>  records counted exactly a second, beside a transaction for each
//	ratio cascade_delete <times>     rows a second of a cascade of 50,000 children, beside the loop
//	                                 usually written with the SDK; no server is needed for this one
//	cost trace_ns <ns>               CPU time that a Tracer takes for a record of one route that is not
//	                                 sampled; no server is needed for this one
//	cost trace_sampled_ns <ns>       the same for a sampled one, without its export
//	ratio opensearch_documents <times>  documents of 1 KB that OpenSearch takes a second, beside
//	                                 opensearchutil.BulkIndexer; a server of its own is started
//	ratio opensearch_cpu <times>     CPU time of BulkIndexer, beside ours for the same documents
//
// The programs are processes of their own, built for release, with default
// settings; see daemon, raw and loop. The backlog is 100,000 MODIFYs of one
// shard, with both images of 1.4 KB. Figures are medians.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/localstack"
)

func main() {
	var b bench
	flag.BoolVar(&b.verbose, "v", false, "print what is behind the figures too")
	flag.IntVar(&b.rounds, "rounds", 5, "in which the backlog is read by the programs in turn")
	only := flag.String("only", "", "measure only `start`, pickup, reload, drain, page, counters, opensearch, traces or cascade")
	local.Main("figures", func(ctx context.Context) error { return b.run(ctx, *only) })
}

// bench is shared by the figures.
type bench struct {
	verbose bool
	rounds  int

	dir     string // of temporary files
	env     []string
	service *service
}

func (b *bench) run(ctx context.Context, only string) error {
	parts, err := local.Only(only, []local.Part{
		{Name: "cascade", Measure: b.cascadeFigures, Alone: true},
		{Name: "traces", Measure: b.traceFigures, Alone: true},
		{Name: "start", Measure: b.startFigures},
		{Name: "pickup", Measure: b.pickupFigures},
		{Name: "reload", Measure: b.reloadFigures},
		{Name: "drain", Measure: b.drainFigures},
		{Name: "page", Measure: b.pageFigures},
		{Name: "counters", Measure: b.counterFigures},
		{Name: "opensearch", Measure: b.openSearchFigures},
	})
	if err != nil {
		return err
	}
	if b.rounds < 1 {
		return fmt.Errorf("-rounds is %d: want 1 at least", b.rounds)
	}
	for _, part := range parts {
		if !part.Alone && b.service == nil {
			stop, err := b.prepare(ctx)
			if err != nil {
				return err
			}
			defer stop()
		}
		since := time.Now()
		if err := part.Measure(ctx); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s: %w", part.Name, err)
		}
		b.logf("%s took %.1f s", part.Name, time.Since(since).Seconds())
	}
	return nil
}

// prepare builds the programs and starts the servers, until stop is called.
func (b *bench) prepare(ctx context.Context) (stop func(), err error) {
	begin := time.Now()
	if b.dir, err = os.MkdirTemp("", "sluice-figures-"); err != nil {
		return nil, err
	}
	remove := func() { os.RemoveAll(b.dir) } //nolint:errcheck // a temporary folder
	for name, pkg := range map[string]string{
		"daemon": "bench/figures/daemon", "raw": "bench/figures/raw", "loop": "bench/figures/loop", "sluice": "cmd/sluice",
	} {
		if err := local.Build(ctx, b.path(name), pkg); err != nil {
			remove()
			return nil, err
		}
	}
	stack, err := localstack.Start(ctx, localstack.Options{Log: os.Stderr, NoSQS: true, Benchmark: true})
	if err != nil {
		remove()
		return nil, err
	}
	b.service = &service{url: stack.DynamoDB}
	// Nothing else of this shell's: a bundle of certificates that AWS_CA_BUNDLE
	// names is read at every start.
	b.env = append(stack.Environ(), "HOME="+b.dir, "PATH="+os.Getenv("PATH"), "SLUICE_ENDPOINT_DYNAMODB="+stack.DynamoDB)
	b.logf("servers and programs ready after %.1f s", time.Since(begin).Seconds())
	return func() {
		stack.Stop()
		remove()
	}, nil
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) logf(format string, args ...any) {
	if b.verbose {
		fmt.Fprintf(os.Stderr, "  "+format+"\n", args...)
	}
}
