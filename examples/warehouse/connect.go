package warehouse

import (
	"context"
	"errors"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/sqs"
)

// Connect returns the routes on their tables and on the queue of
// WAREHOUSE_QUEUE, as run.App wants them.
func Connect(prefix string) func(context.Context, run.Setup) (sluice.Matcher, error) {
	return func(ctx context.Context, s run.Setup) (sluice.Matcher, error) {
		name := s.Env("WAREHOUSE_QUEUE")
		if name == "" {
			return nil, errors.New("WAREHOUSE_QUEUE is not set; want the URL or the name of the queue that is told of builds")
		}
		queue, err := sqs.New(s.AWS("sqs"), name, sqs.Options{Hooks: sqs.Hooks{Committed: s.BatchHooks("sqs").Committed}, Logger: s.Logger})
		if err != nil {
			return nil, err
		}
		store, err := dynamodb.New(s.AWS("dynamodb"), dynamodb.Options{Hooks: dynamodb.Hooks{Committed: s.BatchHooks("dynamodb").Committed, Consumed: s.Consumed}})
		if err != nil {
			return nil, err
		}
		if !s.Lambda {
			if err := queue.Check(ctx); err != nil {
				return nil, err
			}
		}
		return NewRouter(Deps{Store: store, Send: queue.Send, Prefix: prefix}, router.Observe(s.RouterHooks))
	}
}
