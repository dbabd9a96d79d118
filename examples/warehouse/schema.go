package warehouse

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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

// Create makes the tables with their streams, and returns when they can be
// written to.
func Create(ctx context.Context, cfg aws.Config, prefix string) error {
	db := dynamodb.NewFromConfig(cfg)
	for _, s := range schemas {
		in := &dynamodb.CreateTableInput{TableName: aws.String(prefix + s.name), BillingMode: types.BillingModePayPerRequest}
		for i, name := range s.keys {
			in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS})
			in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(name), KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
		}
		if s.stream {
			in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
		}
		if _, err := db.CreateTable(ctx, in); err != nil {
			return fmt.Errorf("creating table %s: %w", *in.TableName, err)
		}
	}
	wait := dynamodb.NewTableExistsWaiter(db, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 200*time.Millisecond, 5*time.Second
	})
	for _, s := range schemas {
		if err := wait.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(prefix + s.name)}, 5*time.Minute); err != nil {
			return fmt.Errorf("waiting for table %s: %w", prefix+s.name, err)
		}
	}
	return nil
}
