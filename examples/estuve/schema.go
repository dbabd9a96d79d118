package estuve

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/examples/internal/kit"
)

// Create makes the tables that are not there, with their streams and the time
// to live of the markers, and returns when they can be written to.
func Create(ctx context.Context, cfg aws.Config, t Tables) error {
	var all kit.Schemas
	for _, name := range append(t.Streams(), t.Markers) {
		all = append(all, kit.Schema{Name: name, Keys: t.Keys()[name], Stream: name != t.Markers, TTL: name == t.Markers})
	}
	return all.Create(ctx, cfg, "")
}
