// Command main runs Estuve: as a Lambda function where Lambda starts it, as a
// daemon everywhere else. With a subcommand it makes the tables, repairs
// counters, or tells what a cascade would delete.
package main

import (
	"context"
	"os"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/estuve"
	"github.com/sluicehq/sluice/run"
)

func main() {
	if len(os.Args) > 1 {
		if command, ok := commands[os.Args[1]]; ok {
			ctx := run.OnSignals(context.Background())
			os.Exit(run.Exit(command(ctx, os.Args[2:], os.Getenv, os.Stdin, os.Stdout), "estuve "+os.Args[1], os.Stderr))
		}
	}
	run.Main(app(os.Getenv))
}

// app reads all three streams unless it is told which.
func app(env func(string) string) run.App {
	return run.App{Name: "estuve", Tables: estuve.Named(env("ESTUVE_PREFIX")).Streams(), Routes: routes}
}

func routes(ctx context.Context, s run.Setup) (sluice.Matcher, error) {
	return estuve.Connect(ctx, estuve.Connection{
		DynamoDB:    s.AWS("dynamodb"),
		SQS:         s.AWS("sqs"),
		Tables:      s.Tables,
		Env:         s.Env,
		Check:       !s.Lambda,
		RouterHooks: s.RouterHooks,
		BatchHooks:  s.BatchHooks,
		Consumed:    s.Consumed,
		Logger:      s.Logger,
	})
}
