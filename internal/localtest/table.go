package localtest

import (
	"context"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// ShardUnits is the capacity, of writes and of reads, that OneShard gives.
const ShardUnits = 50

// OneShard makes the table of in start with one partition, and so its stream with
// one shard. On AWS an on-demand table starts with several: it takes 4,000 writes
// per second at once, and a partition takes 1,000. Use it for tables with few
// writes.
func OneShard(in *dynamodb.CreateTableInput) *dynamodb.CreateTableInput {
	if os.Getenv(EnvAWS) != "" {
		in.BillingMode = types.BillingModeProvisioned
		in.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(ShardUnits), WriteCapacityUnits: aws.Int64(ShardUnits)}
	}
	return in
}

// Streamed makes a table whose key is the text id, with a stream of both images and
// one shard, until the end of the test.
func Streamed(t testing.TB, kind string) (table, streamARN string) {
	t.Helper()
	db := dynamodb.NewFromConfig(DynamoDB(t))
	table = Name(kind)
	out, err := db.CreateTable(t.Context(), OneShard(&dynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			t.Error(err)
		}
	})
	return table, *out.TableDescription.LatestStreamArn
}
