//go:build unix

// Command ratios compares the usual ways of handling stream records with this
// module's, and prints one line each:
//
//	ratio lambda_decode_route <times>    aws-lambda-go's events + json.Unmarshal + switch
//	ratio lambda_decode_project <times>  … + conversion to a map + json.Marshal of the new image
//	ratio getrecords_route <times>       the SDK's GetRecords over loopback HTTP + switch
//	ratio bulk_encode <times>            opensearchutil.BulkIndexer; 1 KB documents with ids and versions
//	ratio record_to_acked_document <times>  the first of these + conversion to a map + json.Marshal + BulkIndexer
//	ratio record_to_acked_by_sequence <times>  the same, by sequence: ours alone puts a mark into each document
//
// Records are MODIFYs of 1.5 KB with both images. It runs on one processor and
// counts the CPU time of the process, garbage collection and loopback server
// included; the stub of an OpenSearch cluster is a process of its own. Both sides of a ratio take turns; the figure is the median of the
// turns' ratios.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/sluicehq/sluice/bench"
	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/benchdata"
)

const (
	rounds   = 11
	slice    = 120 * time.Millisecond // of CPU time, for each side of a round
	perEvent = 100
	perPage  = 500 // about 1 MB

	perBulk   = 900     // documents of a call that is one request
	bulkBytes = 1 << 20 // of a request
)

func main() {
	log.SetFlags(0)
	verbose := flag.Bool("v", false, "print the times behind the ratios too")
	flag.Parse()
	if flag.Arg(0) == serveBulk {
		log.Fatal(serve())
	}
	runtime.GOMAXPROCS(1)
	if err := run(context.Background(), *verbose); err != nil {
		log.Fatal("ratios: ", err)
	}
}

func run(ctx context.Context, verbose bool) error {
	way := bench.NewWay()
	event := benchdata.Event(benchdata.Modify, perEvent)
	large := benchdata.Event(benchdata.Modify, perPage)
	stream := bench.NewStream(benchdata.GetRecords(benchdata.Modify, perPage))
	defer stream.Close()
	discard := func([]byte) {}
	url, stop, err := startStub()
	if err != nil {
		return err
	}
	defer stop()
	bulk, err := bench.NewBulk(url, perBulk, bulkBytes)
	if err != nil {
		return err
	}

	for _, c := range []struct {
		name        string
		records     int
		usual, ours func() (int, error)
	}{
		{"lambda_decode_route", perEvent, func() (int, error) { return bench.UsualRoute(event) }, func() (int, error) { return way.Route(event) }},
		{"lambda_decode_project", perEvent, func() (int, error) { return bench.UsualProject(event, discard) }, func() (int, error) { return way.Project(event, discard) }},
		{"getrecords_route", perPage, func() (int, error) { return stream.UsualRoute(ctx) }, func() (int, error) { return stream.Route(ctx, way) }},
		{"record_to_acked_document", perPage, func() (int, error) { return bulk.UsualEvent(ctx, large) }, func() (int, error) { return bulk.Event(ctx, large) }},
		{"record_to_acked_by_sequence", perPage, func() (int, error) { return bulk.UsualEvent(ctx, large) }, func() (int, error) { return bulk.EventBySequence(ctx, large) }},
		{"bulk_encode", perBulk, func() (int, error) { return bulk.Usual(ctx) }, func() (int, error) { return bulk.Sink(ctx) }},
	} {
		var ratios, usual, ours []float64
		for range rounds {
			u, err := perRecord(c.usual, c.records)
			if err != nil {
				return fmt.Errorf("%s, the usual way: %w", c.name, err)
			}
			o, err := perRecord(c.ours, c.records)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			ratios, usual, ours = append(ratios, u/o), append(usual, u), append(ours, o)
		}
		fmt.Printf("ratio %s %.1f\n", c.name, local.Median(ratios))
		if verbose {
			fmt.Fprintf(os.Stderr, "  %.0f ns and %.0f ns a record; ratios from %.1f to %.1f\n",
				local.Median(usual), local.Median(ours), slices.Min(ratios), slices.Max(ratios))
		}
	}
	return nil
}

// perRecord repeats f for a slice of time and returns its nanoseconds of CPU
// time a record.
func perRecord(f func() (int, error), records int) (float64, error) {
	if _, err := f(); err != nil { // also warms up
		return 0, err
	}
	runtime.GC()
	begin, calls := local.CPU(), 0
	for {
		n, err := f()
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return 0, errors.New("no record was routed")
		}
		calls++
		if spent := local.CPU() - begin; spent >= slice {
			return float64(spent.Nanoseconds()) / float64(calls*records), nil
		}
	}
}
