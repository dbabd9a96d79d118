package page

import "github.com/sluicehq/sluice/router"

func routes(url string, opts ...router.RouterOption) *router.Router { return nil }
