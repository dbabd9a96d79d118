package page

import (
	"context"
	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/streamtest"
)

var (
	s         *streamtest.Service
	orders    *streamtest.Table
	p         *poller.Poller
	id, child string
)

func routes(send func(context.Context, sluice.Message) error) *router.Router { return nil }
