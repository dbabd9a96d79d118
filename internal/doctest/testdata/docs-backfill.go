package page

import (
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/state"
)

var (
	orders *projection.Projection
	store  *state.Memory
)
