package page

import (
	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
)

var (
	onSearch, cleanUp, alert, search sluice.Handler

	store *deadletter.Box
)
