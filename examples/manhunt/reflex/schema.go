package reflex

import (
	"context"
	_ "embed"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/examples/manhunt"
)

//go:embed schema.json
var schema []byte

// Create creates a table with its stream, unless it exists, and returns when it is
// writable.
func Create(ctx context.Context, cfg aws.Config, table string) error {
	return manhunt.CreateBy(ctx, cfg, table, schema)
}
