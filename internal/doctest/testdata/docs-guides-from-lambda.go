package page

import (
	"context"

	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/sqs"
)

func routes(send func(context.Context, sqs.Message) error) *router.Router { return nil }
