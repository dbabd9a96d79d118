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
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/localstack"
)

func main() {
	duration := flag.Duration("duration", 10*time.Minute, "how long to write")
	local.Main("soak", func(ctx context.Context) error { return run(ctx, *duration) })
}

func validate(duration time.Duration) error {
	if least := max(10*lookEvery, 4*quietTime); duration < least {
		return fmt.Errorf("-duration is %v: want %v at least, so that parts of it can be compared", duration, least)
	}
	return nil
}

func run(ctx context.Context, duration time.Duration) error {
	if err := validate(duration); err != nil {
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
	for _, name := range []string{localstack.EnvDynamoDB, localstack.EnvSQS, localstack.EnvOpenSearch} {
		os.Unsetenv(name) //nolint:errcheck // servers of its own, whatever the environment names
	}
	stack, err := localstack.Start(ctx, localstack.Options{Log: os.Stderr, OpenSearch: true, Benchmark: true})
	if err != nil {
		return err
	}
	defer stack.Stop()

	w, err := newWorld(ctx, stack, duration)
	if err != nil {
		return err
	}
	d, err := startDaemon(ctx, binary, dir, stack)
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
