package page

import (
	"github.com/sluicehq/sluice"
)

var sendWelcome sluice.Handler
