package page

import (
	"github.com/sluicehq/sluice/handlers/cascade"
)

var maps *cascade.Cascade
