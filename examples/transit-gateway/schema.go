package transitgateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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
	for _, s := range schemas {
		in := &dynamodb.CreateTableInput{TableName: aws.String(prefix + s.name), BillingMode: types.BillingModePayPerRequest}
		for i, name := range s.keys {
			in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS})
			in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &name, KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
		}
		if s.stream {
			in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
		}
		var there *types.ResourceInUseException
		if _, err := db.CreateTable(ctx, in); err != nil && !errors.As(err, &there) {
			return fmt.Errorf("creating table %s: %w", *in.TableName, err)
		}
	}
	wait := dynamodb.NewTableExistsWaiter(db, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 200*time.Millisecond, 5*time.Second
	})
	for _, s := range schemas {
		name := prefix + s.name
		if err := wait.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, 5*time.Minute); err != nil {
			return fmt.Errorf("waiting for table %s: %w", name, err)
		}
		if s.ttl {
			if err := expire(ctx, db, name); err != nil {
				return fmt.Errorf("time to live of table %s: %w", name, err)
			}
		}
	}
	return nil
}

func expire(ctx context.Context, db *dynamodb.Client, table string) error {
	ttl, err := db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		return err
	}
	on := []types.TimeToLiveStatus{types.TimeToLiveStatusEnabled, types.TimeToLiveStatusEnabling}
	if d := ttl.TimeToLiveDescription; d != nil && slices.Contains(on, d.TimeToLiveStatus) {
		return nil
	}
	_, err = db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
	})
	return err
}
