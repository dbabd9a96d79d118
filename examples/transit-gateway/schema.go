package transitgateway

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/examples/internal/kit"
)

var schemas = kit.Schemas{
	{Name: "tgw", Keys: []string{"owner_id", "tgw_id"}, Stream: true},
	{Name: "tgw_by_rtb", Keys: []string{"rtb_id", "tgw_id"}, TTL: true},
	{Name: "tgw_name", Keys: []string{"name_key"}, Stream: true},
	// The counter of IDs, and the recently deleted IDs.
	{Name: "tgw_id", Keys: []string{"id"}, TTL: true},
}

// Tables names the tables whose streams the routes read.
func Tables(prefix string) []string { return schemas.Streams(prefix) }

// Create makes the tables that are not there, with streams and time to live, and
// returns when they can be written to.
func Create(ctx context.Context, cfg aws.Config, prefix string) error {
	return schemas.Create(ctx, cfg, prefix)
}
