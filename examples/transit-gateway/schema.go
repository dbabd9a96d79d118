package transitgateway

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/examples/internal/kit"
)

// schemas are the tables: their key attributes, all of them strings, whether a
// stream of new and old images is read, and whether rows expire by "ttl".
var schemas = []struct {
	name        string
	keys        []string
	stream, ttl bool
}{
	{"tgw", []string{"owner_id", "tgw_id"}, true, false},
	{"tgw_by_rtb", []string{"rtb_id", "tgw_id"}, false, true},
	{"tgw_name", []string{"name_key"}, true, false},
	// The counter of IDs, and the recently deleted IDs.
	{"tgw_id", []string{"id"}, false, true},
}

// Tables names the tables whose streams the routes read.
func Tables(prefix string) []string {
	var names []string
	for _, s := range schemas {
		if s.stream {
			names = append(names, prefix+s.name)
		}
	}
	return names
}

// Create makes the tables that are not there, with streams and time to live, and
// returns when they can be written to.
func Create(ctx context.Context, cfg aws.Config, prefix string) error {
	db := dynamodb.NewFromConfig(cfg)
	var tables []*dynamodb.CreateTableInput
	for _, s := range schemas {
		tables = append(tables, kit.Table(prefix+s.name, s.stream, s.keys...))
	}
	if err := kit.Create(ctx, db, tables...); err != nil {
		return err
	}
	for _, s := range schemas {
		if !s.ttl {
			continue
		}
		if err := kit.Expire(ctx, db, prefix+s.name); err != nil {
			return err
		}
	}
	return nil
}
