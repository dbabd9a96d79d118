package meadowlark

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/examples/meadowlark/writer"
)

// Create makes the table with its index and its stream if it is not there, and
// returns when it can be written to.
func Create(ctx context.Context, cfg aws.Config, table string) error {
	db := dynamodb.NewFromConfig(cfg)
	in := &dynamodb.CreateTableInput{
		TableName: &table,
		KeySchema: keySchema("pk", "sk"),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String(writer.SecurityIndex),
			KeySchema:  keySchema("securityStudentId", "securityEdOrgId"),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
		BillingMode: types.BillingModePayPerRequest,
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled:  aws.Bool(true),
			StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	}
	for _, name := range []string{"pk", "sk", "securityStudentId", "securityEdOrgId"} {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS})
	}
	var there *types.ResourceInUseException
	if _, err := db.CreateTable(ctx, in); err != nil && !errors.As(err, &there) {
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

func keySchema(hash, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: &hash, KeyType: types.KeyTypeHash},
		{AttributeName: &sort, KeyType: types.KeyTypeRange},
	}
}
