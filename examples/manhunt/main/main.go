// Command main runs Manhunt: as a Lambda function where Lambda starts it, as a
// daemon everywhere else.
package main

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/sqs"
)

// The table whose stream is read and whose searches are looked up.
var table = cmp.Or(os.Getenv("MANHUNT_TABLE"), "manhunt")

func main() {
	run.Main(run.App{Name: "manhunt", Tables: []string{table}, Routes: routes})
}

func routes(ctx context.Context, s run.Setup) (sluice.Matcher, error) {
	name := s.Env("MANHUNT_QUEUE")
	if name == "" {
		return nil, errors.New("MANHUNT_QUEUE is not set; want the URL or the name of the queue that attempts are sent to")
	}
	queue, err := sqs.New(s.AWS("sqs"), name, sqs.Options{
		Hooks:  sqs.Hooks{Committed: s.BatchHooks("sqs").Committed},
		Logger: s.Logger,
	})
	if err != nil {
		return nil, err
	}
	if !s.Lambda { // a function finds out with its first message, and starts faster
		if err := queue.Check(ctx); err != nil {
			return nil, err
		}
	}
	return manhunt.NewRouter(manhunt.Deps{
		Store: manhunt.NewTable(s.AWS("dynamodb"), table),
		Send:  manhunt.SendTo(queue),
	}, router.Observe(s.RouterHooks))
}
