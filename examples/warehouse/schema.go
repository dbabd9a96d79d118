package warehouse

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/examples/internal/kit"
)

var schemas = kit.Schemas{
	{Name: "status_event", Keys: []string{"key", "event_id"}, Stream: true},
	{Name: "status", Keys: []string{"key"}, Stream: true},
	{Name: "status_head", Keys: []string{"key"}},
	{Name: "status_counter", Keys: []string{"key"}, Stream: true},
	{Name: "build", Keys: []string{"key", "locale"}, Stream: true, Index: &types.GlobalSecondaryIndex{
		IndexName: aws.String(buildIndex), KeySchema: kit.Key("name", "env"),
		Projection: &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"build_id", "create_date"}},
	}},
	{Name: "build_head", Keys: []string{"key", "locale"}},
	{Name: "package", Keys: []string{"name"}, Stream: true},
	{Name: "version", Keys: []string{"name", "version"}, Stream: true},
	{Name: "build_file", Keys: []string{"fingerprint"}},
	{Name: "dependent", Keys: []string{"name"}},
	{Name: "dependent_of", Keys: []string{"pkg"}},
	{Name: "release_line", Keys: []string{"key"}, Stream: true},
	{Name: "release_line_dep", Keys: []string{"key", "dependent"}},
	{Name: "release_line_head", Keys: []string{"pkg"}},
}

// Keys names the key attributes of a table, whose name is without its prefix.
func Keys(table string) ([]string, error) {
	for _, s := range schemas {
		if s.Name == table {
			return s.Keys, nil
		}
	}
	return nil, fmt.Errorf("there is no table %s", table)
}

// buildIndex is the index on build by name and env, which are name!env
// together. It has what says how large a build is.
const buildIndex = "by_name_env"

// Create makes the tables that are not there, with their streams and the index,
// and returns when they can be written to.
func Create(ctx context.Context, cfg aws.Config, prefix string) error {
	if err := schemas.Create(ctx, cfg, prefix); err != nil {
		return err
	}
	return hasIndex(ctx, dynamodb.NewFromConfig(cfg), prefix+"build")
}

// hasIndex looks whether a table of builds that was there before has the index.
func hasIndex(ctx context.Context, db *dynamodb.Client, table string) error {
	out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return fmt.Errorf("looking at table %s: %w", table, err)
	}
	for _, x := range out.Table.GlobalSecondaryIndexes {
		if aws.ToString(x.IndexName) == buildIndex {
			return nil
		}
	}
	return fmt.Errorf("table %s has no index %s: add it, with the keys name and env and the attributes build_id and create_date", table, buildIndex)
}
