package page

import (
	"context"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
)

func routes(send func(context.Context, sluice.Message) error) *router.Router { return nil }
