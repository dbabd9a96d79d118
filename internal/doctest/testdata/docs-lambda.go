package page

import (
	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
)

var (
	onSearch sluice.Handler
	store    *deadletter.Box
)
