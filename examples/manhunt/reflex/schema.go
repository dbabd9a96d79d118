package reflex

import (
	"context"
	_ "embed"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/examples/manhunt"
)

//go:embed schema.json
var schema []byte

// Create makes a table with its stream, unless it is there, and returns when it
// can be written to.
func Create(ctx context.Context, cfg aws.Config, table string) error {
	return manhunt.CreateBy(ctx, cfg, table, schema)
}
