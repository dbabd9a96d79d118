package kit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Table describes a table by its partition key and its sort key, which are texts.
// With stream it has a stream of new and old images.
func Table(name string, stream bool, keys ...string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: Texts(keys...), KeySchema: Key(keys...),
	}
	if stream {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
	}
	return in
}

// Key is the key of a table or an index: partition key and sort key.
func Key(names ...string) (key []types.KeySchemaElement) {
	for i, name := range names {
		key = append(key, types.KeySchemaElement{AttributeName: &name, KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
	}
	return key
}

// Texts defines key attributes that are texts.
func Texts(names ...string) (all []types.AttributeDefinition) {
	for _, name := range names {
		all = append(all, types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS})
	}
	return all
}

// Create makes the tables that are not there, and returns when they can be written to.
func Create(ctx context.Context, db *dynamodb.Client, tables ...*dynamodb.CreateTableInput) error {
	for _, in := range tables {
		if _, err := db.CreateTable(ctx, in); err != nil && !errors.As(err, new(*types.ResourceInUseException)) {
			return fmt.Errorf("creating table %s: %w", *in.TableName, err)
		}
	}
	wait := dynamodb.NewTableExistsWaiter(db, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 200*time.Millisecond, 5*time.Second
	})
	for _, in := range tables {
		if err := wait.Wait(ctx, &dynamodb.DescribeTableInput{TableName: in.TableName}, 5*time.Minute); err != nil {
			return fmt.Errorf("waiting for table %s: %w", *in.TableName, err)
		}
	}
	return nil
}

// Expire has rows of a table expire by the attribute "ttl".
func Expire(ctx context.Context, db *dynamodb.Client, table string) error {
	ttl, err := db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		return fmt.Errorf("time to live of table %s: %w", table, err)
	}
	if d := ttl.TimeToLiveDescription; d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		return nil
	}
	_, err = db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
	})
	if err != nil {
		return fmt.Errorf("time to live of table %s: %w", table, err)
	}
	return nil
}
