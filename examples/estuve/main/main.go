// Command main runs Estuve: as a Lambda function where Lambda starts it, as a
// daemon everywhere else, of streams and queue or, with "worker", of the queue
// alone. With another subcommand it makes the tables, repairs counters, or tells
// what a cascade would delete.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/estuve"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/run"
)

func main() {
	switch args := os.Args[1:]; {
	case slices.Equal(args, []string{"help", "worker"}):
		os.Exit(worker(context.Background(), []string{"--help"}, os.Getenv, os.Stdout, os.Stderr))
	case len(args) > 0 && args[0] == "worker":
		os.Exit(worker(run.OnSignals(context.Background()), args[1:], os.Getenv, os.Stdout, os.Stderr))
	}
	program.Main(app(os.Getenv))
}

// app reads all three streams, and works off the queue if there is one, unless
// flags say otherwise.
func app(env func(string) string) run.App {
	a := run.App{Name: "estuve", Tables: estuve.Named(env("ESTUVE_PREFIX")).Streams(), Routes: routes}
	if q := env("ESTUVE_QUEUE"); q != "" {
		a.Queues = []string{q}
	}
	return a
}

// worker works off the queue alone. SLUICE_TABLES is of the daemon beside it.
func worker(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) (exit int) {
	a := app(env)
	a.Name, a.Tables = "estuve worker", nil
	fs := pflag.NewFlagSet(a.Name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	run.AddFlags(fs)
	switch err := fs.Parse(args); {
	case errors.Is(err, pflag.ErrHelp) && !slices.Contains(args, "dlq"):
		for _, name := range []string{"table", "start", "backfill", "backfill-units"} {
			_ = fs.MarkHidden(name) // a flag that is not there is not shown either
		}
		fmt.Fprintf(stdout, workerHelp, fs.FlagUsages())
		return 0
	case fs.Changed("table"):
		return kit.Exit(kit.Usage("--table: a worker reads no table; leave the flag out, or run estuve without worker"), "estuve", stderr, "worker")
	case len(a.Queues) == 0 && err == nil:
		return kit.Exit(kit.Usage("ESTUVE_QUEUE is not set: set it to the URL or the name of the queue of cascades"), "estuve", stderr, "worker")
	}
	return run.Run(ctx, a, args, func(name string) string {
		switch {
		case name == "SLUICE_TABLES":
			return ""
		case name == "SLUICE_APPLICATION":
			return cmp.Or(env(name), "estuve-worker")
		}
		return env(name)
	}, stdout, stderr)
}

const workerHelp = `estuve worker works off the queue of ESTUVE_QUEUE, until SIGTERM or SIGINT. It reads
no table. Dead letters are kept in the state file.

Usage:
  estuve worker [flags]

Flags:
%s`

func routes(_ context.Context, s run.Setup) (sluice.Matcher, error) {
	if len(s.Queues) > 0 && s.Env("ESTUVE_QUEUE") == "" { // no route would take the messages: they would be lost
		return nil, fmt.Errorf("--queue (SLUICE_QUEUES) names %s, and ESTUVE_QUEUE is not set: set it to the queue of cascades", strings.Join(s.Queues, ", "))
	}
	return estuve.Connect(s)
}
