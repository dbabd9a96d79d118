//go:build unix

// Command figures measures a whole daemon on DynamoDB Local, and the peers
// beside it in the same run, and prints one line each:
//
//	cost start_cold_s <s>            from exec to the first record handled, without a state file
//	cost start_again_s <s>           the same with the state file of an earlier run; a record waits in both
//	cost pickup_p50_ms <ms>          from just before a write to its handler; a write every 2 s
//	cost pickup_p99_ms <ms>
//	cost pickup_polls_per_s <n>      of the shard that was polled most, meanwhile; more than 5 is an error
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
//	cost binary_mb <MB>              of examples/manhunt/main, built for release
//	ratio cascade_delete <times>     rows a second of a cascade of 50,000 children, beside the loop
//	                                 usually written with the SDK; no server is needed for this one
//	ratio cascade_capacity_used <1>  of a scarce write capacity that is its budget
//	cost cascade_throttled_percent   of its writes, that the service gave back meanwhile
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
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/internal/localstack"
)

func main() {
	log.SetFlags(0)
	var b bench
	flag.BoolVar(&b.verbose, "v", false, "print what is behind the figures too")
	flag.IntVar(&b.starts, "starts", 7, "starts of each kind")
	flag.IntVar(&b.tables, "tables", 20, "tables that are written to while pick-up is measured")
	flag.DurationVar(&b.pickup, "pickup", time.Minute, "how long they are")
	flag.IntVar(&b.records, "records", 100_000, "in the backlog")
	flag.IntVar(&b.rounds, "rounds", 5, "in which the backlog is read by the programs in turn")
	flag.IntVar(&b.counted, "counted", 4000, "records that are counted, of each round")
	flag.IntVar(&b.documents, "documents", 50_000, "written to OpenSearch, of each round")
	only := flag.String("only", "", "measure only `start`, pickup, reload, drain, page, counters, opensearch, traces or cascade")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := b.run(ctx, *only)
	stop()
	if err != nil {
		log.Fatal("figures: ", err)
	}
}

// bench is shared by the figures.
type bench struct {
	verbose                         bool
	starts, tables, records, rounds int
	counted, documents              int
	pickup                          time.Duration

	dir     string // of temporary files
	env     []string
	service *service
}

func (b *bench) run(ctx context.Context, only string) error {
	begin := time.Now()
	parts := []part{
		{"cascade", b.cascadeFigures}, {"traces", b.traceFigures}, {"start", b.startFigures}, {"pickup", b.pickupFigures}, {"reload", b.reloadFigures}, {"drain", b.drainFigures}, {"page", b.pageFigures}, {"counters", b.counterFigures}, {"opensearch", b.openSearchFigures},
	}
	if only != "" {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == only })
		if i < 0 {
			return fmt.Errorf("-only is %q: want start, pickup, reload, drain, page, counters, opensearch, traces or cascade", only)
		}
		parts = parts[i : i+1]
	}
	if min(b.starts, b.tables, b.rounds, b.counted, b.documents) < 1 {
		return fmt.Errorf("-starts, -tables, -rounds, -counted and -documents are %d, %d, %d, %d and %d: want 1 at least", b.starts, b.tables, b.rounds, b.counted, b.documents)
	}
	for parts[0].name == "cascade" || parts[0].name == "traces" { // before there are servers, which they need none of
		if err := parts[0].measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", parts[0].name, err)
		}
		if parts = parts[1:]; len(parts) == 0 {
			return nil
		}
	}
	dir, err := os.MkdirTemp("", "sluice-figures-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	b.dir = dir
	if err := b.build(ctx); err != nil {
		return err
	}
	stack, err := localstack.Start(ctx, localstack.Options{Log: os.Stderr, NoSQS: true, Benchmark: true})
	if err != nil {
		return err
	}
	defer stack.Stop()
	b.service = &service{url: stack.DynamoDB}
	// Nothing else of this shell's: a bundle of certificates that AWS_CA_BUNDLE
	// names is read at every start.
	b.env = append(stack.Environ(), "HOME="+dir, "PATH="+os.Getenv("PATH"), "SLUICE_ENDPOINT_DYNAMODB="+stack.DynamoDB)
	b.logf("servers and programs ready after %.1f s", time.Since(begin).Seconds())

	for _, part := range parts {
		since := time.Now()
		if err := part.measure(ctx); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s: %w", part.name, err)
		}
		b.logf("%s took %.1f s", part.name, time.Since(since).Seconds())
	}
	return nil
}

type part struct {
	name    string
	measure func(context.Context) error
}

// build makes the programs, each as docs/poller.md says for a release.
func (b *bench) build(ctx context.Context) error {
	const module = "github.com/sluicehq/sluice/"
	for name, pkg := range map[string]string{
		"daemon": "bench/figures/daemon", "raw": "bench/figures/raw", "loop": "bench/figures/loop",
		"manhunt": "examples/manhunt/main", "sluice": "cmd/sluice",
	} {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags=lambda.norpc", "-ldflags=-s -w", "-o", b.path(name), module+pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
	}
	binary, err := os.Stat(b.path("manhunt"))
	if err != nil {
		return err
	}
	fmt.Printf("cost binary_mb %.1f\n", float64(binary.Size())/1e6)
	return nil
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) logf(format string, args ...any) {
	if b.verbose {
		fmt.Fprintf(os.Stderr, "  "+format+"\n", args...)
	}
}
