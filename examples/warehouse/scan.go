package warehouse

import (
	"context"
	"fmt"
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item/sdkitem"
)

// NewScan returns a function that reads a page of a whole table, consistently:
// limit items at most, 0 is as many as the service puts into a page. after is
// Next of the page before.
func NewScan(cfg aws.Config) func(ctx context.Context, table string, limit int, after sluice.Item) (dynamo.Page, error) {
	db := dynamodb.NewFromConfig(cfg)
	return func(ctx context.Context, table string, limit int, after sluice.Item) (page dynamo.Page, err error) {
		in := &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true), ExclusiveStartKey: sdkitem.Map(after)}
		if limit > 0 {
			in.Limit = aws.Int32(int32(min(limit, math.MaxInt32)))
		}
		out, err := db.Scan(ctx, in)
		if err != nil {
			return page, fmt.Errorf("reading table %s: %w", table, err)
		}
		page.Items = make([]sluice.Item, len(out.Items))
		for i, m := range out.Items {
			if page.Items[i], err = sdkitem.FromMap(m); err != nil {
				return page, fmt.Errorf("reading table %s: %w", table, err)
			}
		}
		if len(out.LastEvaluatedKey) > 0 {
			page.Next, err = sdkitem.FromMap(out.LastEvaluatedKey)
		}
		return page, err
	}
}
