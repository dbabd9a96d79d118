package manhunt

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/examples/internal/kit"
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
	return kit.Create(ctx, dynamodb.NewFromConfig(cfg), &in)
}
