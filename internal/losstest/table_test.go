//go:build integration

package losstest

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/localtest"
)

// table is the source of all changes.
type table struct {
	name   string
	client *dynamodb.Client
}

func newTable(t *testing.T) *table {
	t.Helper()
	tab := &table{name: "loss-" + rand.Text(), client: dynamodb.NewFromConfig(localtest.DynamoDB(t))}
	_, err := tab.client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &tab.name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := tab.client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &tab.name}); err != nil {
			t.Error(err)
		}
	})
	return tab
}

// fill makes all changes, by several writers, each item's in order by one of
// them.
func (tab *table) fill(ctx context.Context) error {
	const writers = 4
	errs := make([]error, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for first := w * block; first < items && errs[w] == nil; first += writers * block {
				errs[w] = tab.fillBlock(ctx, first)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (tab *table) fillBlock(ctx context.Context, first int) error {
	for v := 1; v <= versions; v++ {
		for i := first; i < first+block; i += batch {
			var requests []types.WriteRequest
			for n := i; n < i+batch; n++ {
				requests = append(requests, write(n, v))
			}
			for left := (map[string][]types.WriteRequest{tab.name: requests}); len(left) > 0; {
				out, err := tab.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: left})
				if err != nil {
					return err
				}
				left = out.UnprocessedItems
			}
		}
	}
	return nil
}
