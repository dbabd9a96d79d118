package manhunt

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// schema is also what aws dynamodb create-table takes as --cli-input-json.
//
//go:embed schema.json
var schema []byte

// Create creates a table with its two indexes and its stream, unless it exists,
// and returns when it is writable.
func Create(ctx context.Context, cfg aws.Config, table string) error {
	return CreateBy(ctx, cfg, table, schema)
}

// CreateBy is Create for another schema, which is JSON as aws dynamodb create-table
// takes it.
func CreateBy(ctx context.Context, cfg aws.Config, table string, schema []byte) error {
	d := json.NewDecoder(bytes.NewReader(schema))
	d.DisallowUnknownFields()
	var in dynamodb.CreateTableInput
	if err := d.Decode(&in); err != nil {
		return fmt.Errorf("schema of table %s: %w", table, err)
	}
	in.TableName = &table
	db := dynamodb.NewFromConfig(cfg)
	var there *types.ResourceInUseException
	if _, err := db.CreateTable(ctx, &in); err != nil && !errors.As(err, &there) {
		return fmt.Errorf("creating table %s: %w", table, err)
	}
	err := dynamodb.NewTableExistsWaiter(db, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 200*time.Millisecond, 5*time.Second
	}).Wait(ctx, &dynamodb.DescribeTableInput{TableName: &table}, 5*time.Minute)
	if err != nil {
		return fmt.Errorf("waiting for table %s: %w", table, err)
	}
	return nil
}
