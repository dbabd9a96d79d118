package kit

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

// Schemas are the tables of an example, whose names begin with a prefix.
type Schemas []Schema

// Schema is a table, by its partition key and its sort key, which are texts.
type Schema struct {
	Name   string // without the prefix
	Keys   []string
	Stream bool                        // it has a stream of new and old images
	TTL    bool                        // its rows expire by the attribute "ttl"
	Index  *types.GlobalSecondaryIndex // nil: none
}

// Streams names the tables that have a stream.
func (all Schemas) Streams(prefix string) (names []string) {
	for _, s := range all {
		if s.Stream {
			names = append(names, prefix+s.Name)
		}
	}
	return names
}

// Create makes the tables that are not there, with streams, index and time to live, and
// returns when they can be written to.
func (all Schemas) Create(ctx context.Context, cfg aws.Config, prefix string) error {
	db := dynamodb.NewFromConfig(cfg)
	var tables []*dynamodb.CreateTableInput
	for _, s := range all {
		tables = append(tables, s.table(prefix))
	}
	if err := Create(ctx, db, tables...); err != nil {
		return err
	}
	for _, s := range all {
		if !s.TTL {
			continue
		}
		if err := expire(ctx, db, prefix+s.Name); err != nil {
			return err
		}
	}
	return nil
}

func (s Schema) table(prefix string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName: aws.String(prefix + s.Name), BillingMode: types.BillingModePayPerRequest, KeySchema: Key(s.Keys...),
	}
	keys := in.KeySchema
	if s.Index != nil {
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{*s.Index}
		keys = slices.Concat(keys, s.Index.KeySchema)
	}
	defined := map[string]bool{} // an index may have keys of the table
	for _, k := range keys {
		if defined[*k.AttributeName] {
			continue
		}
		defined[*k.AttributeName] = true
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: k.AttributeName, AttributeType: types.ScalarAttributeTypeS})
	}
	if s.Stream {
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

// expire has rows of a table expire by the attribute "ttl".
func expire(ctx context.Context, db *dynamodb.Client, table string) error {
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
