package page

import (
	"context"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

var (
	options       projection.Options
	made, changed sluice.Record
	indices       *opensearch.Indices
	write         func(context.Context, document.Op) error
)
