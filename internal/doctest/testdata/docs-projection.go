package page

import (
	"context"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/sinks/opensearch/indices"
)

var (
	options       projection.Options
	made, changed sluice.Record
	cluster       *indices.Cluster
	write         func(context.Context, document.Op) error
)
