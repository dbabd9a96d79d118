package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/run"
)

func runCommand(c *cli) *cobra.Command {
	var o run.Options
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Read the tables' streams and queues, and handle what comes",
		Long: `Read the tables' streams, consume queues and handle what comes, until SIGTERM
or SIGINT.

` + run.Help + `

The routes are those of the manhunt example; MANHUNT_QUEUE names their queue.`,
		Example: `  # From now on, with everything else by default
  sluice run --table manhunt --start LATEST

  # From the oldest record that the stream still holds
  sluice run --table manhunt --start TRIM_HORIZON --state /var/lib/sluice/state.db

  # The messages of a queue, too, which take the routes "<kind>#MESSAGE"
  sluice run --table manhunt --start LATEST --queue jobs

  # On local servers
  export AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any
  export SLUICE_ENDPOINT_DYNAMODB=http://127.0.0.1:8000 SLUICE_ENDPOINT_SQS=http://127.0.0.1:9324
  MANHUNT_QUEUE=attempts SLUICE_TABLES=manhunt SLUICE_START=LATEST sluice run`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.FromEnv(cmd.Flags(), c.env); err != nil {
				return err
			}
			return run.Daemon(cmd.Context(), run.App{Name: "sluice", Routes: routes}, o, c.env, c.stderr)
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}

func routes(ctx context.Context, s run.Setup) (sluice.Matcher, error) {
	return manhunt.Connect(ctx, manhunt.Connection{
		DynamoDB: s.AWS("dynamodb"), SQS: s.AWS("sqs"), Tables: s.Tables, Env: s.Env, Check: true,
		RouterHooks: s.RouterHooks, Committed: s.BatchHooks("sqs").Committed, Logger: s.Logger,
	})
}
