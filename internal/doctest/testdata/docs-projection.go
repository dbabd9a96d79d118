package page

import (
	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/projection"
)

var (
	options       projection.Options
	made, changed sluice.Record
)
