package dynamodb_test

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

// Each order counts once for its customer, however often its record comes.
func ExampleStore_Once() {
	var cfg aws.Config // of config.LoadDefaultConfig
	store, err := dynamodb.New(cfg, dynamodb.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = func(ctx context.Context, rec *sluice.Record) error {
		customer, _ := rec.New.Lookup("customer")
		_, err := store.Once(ctx, dynamo.Unit{
			Marker: dynamo.NewMarker("markers", "orders#"+rec.EventID, time.Now().Add(72*time.Hour)),
			Adds: []dynamo.Add{{
				Table: "customers", Key: item.Of(item.String("pk", customer.Str())), By: map[string]int64{"orders": 1},
			}},
		})
		return err
	}
	// Output: dynamodb: no Region: set AWS_REGION, the profile's region, or Region of the aws.Config
}
