//go:build unix

// Command soak runs a daemon under load for a while, on servers of its own, and
// compares the effects with the writes. The daemon is sluice run, with a file of
// three routes: a message, a document and numbers for each change. It prints a
// line for each figure. It fails in these cases:
//
//   - An item's document is missing, exists without the item, or has another version.
//     A change has no message. A number of a parent is not exactly that of its items.
//   - The lag did not return to 0 after the last write.
//   - Resident memory grew from the second to the last fifth of the time (medians), or
//     goroutines grew from a rest at the first fifth to the end, by more than their
//     usual variation.
//   - A record was parked, or the daemon did not end in order.
//
// The figures:
//
//	soak writes <n>                changes of items, each of them a record
//	soak writes_per_s <n>
//	soak lag_most_records <n>      written, and not yet handled by every route
//	soak lag_gone_s <s>            from the last write until every record was handled
//	soak rss_second_mb <MB>        resident memory, median of the second fifth
//	soak rss_last_mb <MB>          of the last fifth
//	soak goroutines_early <n>      when all was handled and the writer rested, at the first fifth
//	soak goroutines_end <n>        the same, at the end
//	soak cpu_s_per_million <s>     CPU time of the daemon for a million records
//	soak messages_twice <n>        received more often than once
//	soak wrong <n>                 how many checks failed
//
// The writer goes as fast as the servers take its writes and the daemon follows.
// It slows down when more than -lag records wait. -records, spread over the time,
// limits it; the default is more than DynamoDB Local takes in ten minutes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/localstack"
)

func main() {
	var o options
	flag.DurationVar(&o.duration, "duration", 10*time.Minute, "how long to write")
	flag.IntVar(&o.items, "items", 2000, "that are written, changed and deleted over and over")
	flag.IntVar(&o.parents, "parents", 50, "whose numbers are kept")
	flag.IntVar(&o.records, "records", 1_000_000, "writes at most, spread over the time")
	flag.IntVar(&o.lag, "lag", 2000, "records that may wait before the writer makes way")
	flag.DurationVar(&o.every, "every", 2*time.Second, "how often the daemon is looked at")
	flag.DurationVar(&o.patience, "patience", 3*time.Minute, "for the lag to return to 0 after the last write")
	local.Main("soak", func(ctx context.Context) error { return run(ctx, o) })
}

type options struct {
	duration, every, patience    time.Duration
	items, parents, records, lag int
}

func (o options) validate() error {
	var errs []error
	if least := max(10*o.every, 4*quietTime); o.duration < least || o.every <= 0 {
		errs = append(errs, fmt.Errorf("-duration is %v: want %v at least with -every %v, so that parts of it can be compared", o.duration, least, o.every))
	}
	if o.items < writers*perCall || o.parents < 1 || o.records < 1 || o.lag < 1 {
		errs = append(errs, fmt.Errorf("-items, -parents, -records and -lag are %d, %d, %d and %d: want %d items and 1 of the others at least", o.items, o.parents, o.records, o.lag, writers*perCall))
	}
	return errors.Join(errs...)
}

func run(ctx context.Context, o options) error {
	if err := o.validate(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sluice-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	binary := filepath.Join(dir, "sluice")
	if err := local.Build(ctx, binary, "cmd/sluice"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "sluice.yaml"), []byte(configuration), 0o600); err != nil {
		return err
	}
	for _, name := range []string{localstack.EnvDynamoDB, localstack.EnvOpenSearch} {
		os.Unsetenv(name) //nolint:errcheck // servers of its own, whatever the environment names
	}
	stack, err := localstack.Start(ctx, localstack.Options{Log: os.Stderr, NoSQS: true, OpenSearch: true, Benchmark: true})
	if err != nil {
		return err
	}
	defer stack.Stop()

	w, err := newWorld(ctx, stack, o)
	if err != nil {
		return err
	}
	queue := httptest.NewServer(&w.mail)
	defer queue.Close()
	d, err := startDaemon(ctx, binary, dir, stack, queue.URL)
	if err != nil {
		return err
	}
	defer d.Kill()
	wrong, err := w.soak(ctx, d)
	if err != nil {
		return d.Failure(err)
	}
	if err := d.Stop(); err != nil {
		wrong = append(wrong, fmt.Errorf("the daemon did not end in order: %w", err))
	}
	fmt.Printf("soak wrong %d\n", len(wrong))
	if len(wrong) > 0 {
		return d.Failure(errors.Join(wrong...))
	}
	return nil
}
