package streamsapi

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluicehq/sluice/internal/awsclient"
)

// GetRecords returns the body of one GetRecords answer, of at most limit
// records (0: the service's own 1,000). The body is the caller's alone. Errors
// are the SDK's typed ones.
func (c *Client) GetRecords(ctx context.Context, iterator string, limit int32) ([]byte, error) {
	in := &dynamodbstreams.GetRecordsInput{ShardIterator: &iterator}
	if limit > 0 {
		in.Limit = &limit
	}
	out, err := c.Client.GetRecords(ctx, in, rawBody)
	if err != nil {
		return nil, err
	}
	body, err := awsclient.Body(out.ResultMetadata)
	if err != nil {
		return nil, fmt.Errorf("GetRecords: %w", err)
	}
	return body, nil
}

func rawBody(o *dynamodbstreams.Options) {
	o.APIOptions = append(o.APIOptions, awsclient.RawBody(&dynamodbstreams.GetRecordsOutput{}))
}
