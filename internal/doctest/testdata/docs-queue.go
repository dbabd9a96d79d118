package page

import (
	"github.com/sluicehq/sluice"
)

var onOrder, resize sluice.Handler
