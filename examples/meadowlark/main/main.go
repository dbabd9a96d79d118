// Command main runs Meadowlark: as a Lambda function where Lambda starts it, as
// a daemon everywhere else. With a subcommand it makes table and template,
// writes the documents of the fixtures, or deletes one.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/meadowlark"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/run"
)

func main() {
	if len(os.Args) > 1 {
		switch name := os.Args[1]; {
		case name == "help" && len(os.Args) == 3: // help COMMAND
			os.Exit(run.Exit(execute(context.Background(), os.Args[2], []string{"--help"}, os.Getenv, os.Stdout), "meadowlark", os.Stderr))
		case name == "help" || name == "--help" || name == "-h":
			fmt.Println(help())
			os.Args[1] = "--help" // the flags follow
		case !strings.HasPrefix(name, "-"):
			ctx := run.OnSignals(context.Background())
			os.Exit(run.Exit(execute(ctx, name, os.Args[2:], os.Getenv, os.Stdout), "meadowlark", os.Stderr))
		}
	}
	run.Main(app(os.Getenv))
}

// app reads the table's stream, and works off its own queue.
func app(env func(string) string) run.App {
	a := run.App{Name: "meadowlark", Tables: []string{writer.DefaultTable}, Routes: routes}
	if q := env("MEADOWLARK_CHECKS"); q != "" {
		a.Queues = []string{q}
	}
	return a
}

func routes(_ context.Context, s run.Setup) (sluice.Matcher, error) {
	var timeout time.Duration
	if s.Lambda {
		timeout = 5 * time.Second
	}
	return meadowlark.Connect(meadowlark.Connection{
		Timeout:    timeout,
		DynamoDB:   s.AWS("dynamodb"),
		SQS:        s.AWS("sqs"),
		OpenSearch: s.AWS("opensearch"),
		Tables:     s.Tables,
		Env:        s.Env,
		Check:      s.Check,
		Metrics:    s.Metrics,
		Logger:     s.Logger,
	})
}
