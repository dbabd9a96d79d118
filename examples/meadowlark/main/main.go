// Command main runs Meadowlark: as a Lambda function where Lambda starts it, as
// a daemon everywhere else. With a subcommand it makes table and template,
// writes the documents of the fixtures, or deletes one.
package main

import (
	"context"
	"os"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/meadowlark"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/run"
)

func main() { program.Main(app(os.Getenv)) }

// app reads the table's stream, and works off its own queue.
func app(env func(string) string) run.App {
	a := run.App{Name: "meadowlark", Tables: []string{writer.DefaultTable}, Routes: routes}
	if q := env("MEADOWLARK_CHECKS"); q != "" {
		a.Queues = []string{q}
	}
	return a
}

func routes(_ context.Context, s run.Setup) (sluice.Matcher, error) { return meadowlark.Connect(s) }
