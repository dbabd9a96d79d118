package snapshot

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awsclient"
	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/item/sdkitem"
)

// client makes the calls about one table. It tries each once: the caller retries.
type client struct {
	api      *dynamodb.Client
	name     string
	region   string
	where    string // for messages to people
	timeout  time.Duration
	eventual bool
}

func newClient(cfg aws.Config, name string, o ScanOptions) *client {
	c := &client{
		api: dynamodb.NewFromConfig(awsclient.Tuned(cfg, maxSegments)), name: name, region: cfg.Region,
		where: fmt.Sprintf(" (Region %s)", cfg.Region), timeout: o.CallTimeout, eventual: o.Eventual,
	}
	if cfg.BaseEndpoint != nil {
		c.where = fmt.Sprintf(" (endpoint %s, Region %s)", *cfg.BaseEndpoint, cfg.Region)
	}
	return c
}

// scan reads the page of a segment behind after, of limit items at most (0: the
// service's own 1 MB). It returns how many bytes the answer had, too.
func (c *client) scan(ctx context.Context, t *table, segment, segments int, after sluice.Item, limit int32) (page wire.ScanPage, bytes int, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	in := &dynamodb.ScanInput{
		TableName: &c.name, ConsistentRead: aws.Bool(!c.eventual), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		ExclusiveStartKey: sdkitem.Map(after),
	}
	if segments > 1 {
		in.Segment, in.TotalSegments = aws.Int32(int32(segment)), aws.Int32(int32(segments))
	}
	if limit > 0 {
		in.Limit = &limit
	}
	out, err := c.api.Scan(ctx, in, rawBody)
	if err != nil {
		return page, 0, err
	}
	body, err := awsclient.Body(out.ResultMetadata)
	if err != nil {
		return page, 0, err
	}
	page, err = wire.DecodeScan(body, wire.ScanSource{TableARN: t.arn, TableID: t.id, Region: c.region, Keys: t.keys})
	if err != nil {
		return page, len(body), &errDamaged{err}
	}
	return page, len(body), nil
}

func rawBody(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, awsclient.RawBody(&dynamodb.ScanOutput{}))
}
