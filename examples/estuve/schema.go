package estuve

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/examples/internal/kit"
)

// Create makes the tables that are not there, with their streams and the time
// to live of the markers, and returns when they can be written to.
func Create(ctx context.Context, cfg aws.Config, t Tables) error {
	db := dynamodb.NewFromConfig(cfg)
	var tables []*dynamodb.CreateTableInput
	for _, name := range append(t.Streams(), t.Markers) {
		tables = append(tables, kit.Table(name, name != t.Markers, t.Keys()[name]...))
	}
	if err := kit.Create(ctx, db, tables...); err != nil {
		return err
	}
	return kit.Expire(ctx, db, t.Markers)
}
