package warehouse

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/examples/internal/kit"
)

// schemas are the tables: their key attributes, all of them strings, and
// whether a stream of new and old images is read.
var schemas = []struct {
	name   string
	keys   []string
	stream bool
}{
	{"status_event", []string{"key", "event_id"}, true},
	{"status", []string{"key"}, true},
	{"status_head", []string{"key"}, false},
	{"status_counter", []string{"key"}, true},
	{"build", []string{"key", "locale"}, true},
	{"build_head", []string{"key", "locale"}, false},
	{"package", []string{"name"}, true},
	{"version", []string{"name", "version"}, true},
	{"build_file", []string{"fingerprint"}, false},
	{"dependent", []string{"name"}, false},
	{"dependent_of", []string{"pkg"}, false},
	{"release_line", []string{"key"}, true},
	{"release_line_dep", []string{"key", "dependent"}, false},
	{"release_line_head", []string{"pkg"}, false},
}

// Keys names the key attributes of a table, whose name is without its prefix.
func Keys(table string) ([]string, error) {
	for _, s := range schemas {
		if s.name == table {
			return s.keys, nil
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
	db := dynamodb.NewFromConfig(cfg)
	var tables []*dynamodb.CreateTableInput
	for _, s := range schemas {
		in := kit.Table(prefix+s.name, s.stream, s.keys...)
		if s.name == "build" {
			in.AttributeDefinitions = append(in.AttributeDefinitions, kit.Texts("name", "env")...)
			in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
				IndexName: aws.String(buildIndex), KeySchema: kit.Key("name", "env"),
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"build_id", "create_date"}},
			}}
		}
		tables = append(tables, in)
	}
	if err := kit.Create(ctx, db, tables...); err != nil {
		return err
	}
	return hasIndex(ctx, db, prefix+"build")
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
