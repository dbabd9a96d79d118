package page

import "github.com/sluicehq/sluice/router"

func routes(url string, opts ...router.Option) *router.Router { return nil }
