// Command main runs Estuve: as a Lambda function where Lambda starts it, as a
// daemon everywhere else, of streams and queue or, with "worker", of the queue
// alone. With another subcommand it makes the tables, repairs counters, or tells
// what a cascade would delete.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/estuve"
	"github.com/sluicehq/sluice/run"
)

func main() {
	if len(os.Args) > 1 {
		switch name := os.Args[1]; {
		case name == "help" && len(os.Args) == 3 && os.Args[2] != "worker": // help COMMAND
			os.Exit(run.Exit(execute(context.Background(), os.Args[2], []string{"--help"}, os.Getenv, os.Stdin, os.Stdout), "estuve", os.Stderr))
		case name == "help" || name == "--help" || name == "-h":
			fmt.Println(help())
			os.Args[1] = "--help" // the flags follow
		case !strings.HasPrefix(name, "-") && name != "worker":
			ctx := run.OnSignals(context.Background())
			os.Exit(run.Exit(execute(ctx, name, os.Args[2:], os.Getenv, os.Stdin, os.Stdout), "estuve", os.Stderr))
		}
	}
	a, args := app(os.Getenv, os.Args[1:])
	os.Args = append(os.Args[:1], args...)
	run.Main(a)
}

// app reads all three streams, and works off the queue if there is one, unless
// flags say otherwise. As a worker it does the latter alone.
func app(env func(string) string, args []string) (run.App, []string) {
	a := run.App{Name: "estuve", Tables: estuve.Named(env("ESTUVE_PREFIX")).Streams(), Routes: routes}
	if q := env("ESTUVE_QUEUE"); q != "" {
		a.Queues = []string{q}
	}
	if len(args) > 0 && args[0] == "worker" {
		a.Name, a.Tables, args = "estuve-worker", nil, args[1:]
	}
	return a, args
}

func routes(_ context.Context, s run.Setup) (sluice.Matcher, error) {
	return estuve.Connect(estuve.Connection{
		DynamoDB:    s.AWS("dynamodb"),
		SQS:         s.AWS("sqs"),
		Tables:      s.Tables,
		Env:         s.Env,
		Check:       s.Check,
		RouterHooks: s.RouterHooks,
		BatchHooks:  s.BatchHooks,
		Consumed:    s.Consumed,
		Logger:      s.Logger,
	})
}
