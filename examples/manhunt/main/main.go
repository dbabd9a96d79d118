// Command main runs Manhunt: as a Lambda function where Lambda starts it, as a
// daemon everywhere else.
package main

import (
	"context"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/run"
)

func main() {
	run.Main(run.App{Name: "manhunt", Tables: []string{manhunt.DefaultTable}, Routes: routes})
}

func routes(ctx context.Context, s run.Setup) (sluice.Matcher, error) {
	return manhunt.Connect(ctx, manhunt.Connection{
		DynamoDB:    s.AWS("dynamodb"),
		SQS:         s.AWS("sqs"),
		Tables:      s.Tables,
		Env:         s.Env,
		Check:       !s.Lambda,
		RouterHooks: s.RouterHooks,
		Committed:   s.BatchHooks("sqs").Committed,
		Logger:      s.Logger,
	})
}
