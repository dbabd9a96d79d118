package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/backoff"
)

// table is what DescribeTable says of one.
type table struct {
	name    string
	arn     string
	id      string // "" where the service knows none
	created time.Time
	stream  string   // ARN of its stream; "" when it has none
	keys    []string // the partition key first
	units   float64  // provisioned read units a second; 0 on demand
	items   int64    // an estimate of the service, up to six hours old
	bytes   int64
}

// describe makes one call.
func (c *client) describe(ctx context.Context) (table, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	out, err := c.api.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &c.name})
	if err != nil {
		return table{}, err
	}
	if out.Table == nil || aws.ToString(out.Table.TableArn) == "" {
		return table{}, errors.New("the answer holds no table")
	}
	d := out.Table
	t := table{
		name: c.name, arn: *d.TableArn, id: aws.ToString(d.TableId), created: aws.ToTime(d.CreationDateTime).UTC(),
		items: aws.ToInt64(d.ItemCount), bytes: aws.ToInt64(d.TableSizeBytes),
	}
	if s := d.StreamSpecification; s != nil && aws.ToBool(s.StreamEnabled) {
		t.stream = aws.ToString(d.LatestStreamArn)
	}
	onDemand := d.BillingModeSummary != nil && d.BillingModeSummary.BillingMode == types.BillingModePayPerRequest
	if p := d.ProvisionedThroughput; p != nil && !onDemand {
		t.units = float64(aws.ToInt64(p.ReadCapacityUnits))
	}
	for _, k := range d.KeySchema { // CreateTable takes the partition key first alone
		t.keys = append(t.keys, aws.ToString(k.AttributeName))
	}
	if len(t.keys) == 0 {
		return table{}, errors.New("the answer holds no key attributes")
	}
	return t, nil
}

// same reports whether o is t itself and not another table in its place.
func (t *table) same(o table) bool {
	return t.arn == o.arn && t.id == o.id && t.created.Equal(o.created)
}

// find describes the table, again and again for limit while that may help.
func (c *client) find(outer context.Context, limit time.Duration) (table, error) {
	ctx, cancel := context.WithTimeout(outer, limit)
	defer cancel()
	var last error // that says more than that time is over
	for failures := 1; ; failures++ {
		t, err := c.describe(ctx)
		if err == nil {
			return t, nil
		}
		if outer.Err() != nil {
			return table{}, context.Cause(outer)
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if classify(err) == fatal || backoff.Sleep(ctx, min(retryIn(transient, failures), startRetry)) != nil {
			return table{}, c.explain("dynamodb:DescribeTable", last)
		}
	}
}

// checkName returns the mistake in the name of a table.
func checkName(name string) error {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
	if len(name) < 3 || len(name) > 255 || strings.Trim(name, allowed) != "" {
		return fmt.Errorf("snapshot: table %q: want a table's name, of 3 to 255 letters, digits, '_', '-' and '.'", name)
	}
	return nil
}
