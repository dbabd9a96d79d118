package streamsapi

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

// A server or proxy in trouble can answer 200 with nothing, or not all, in it.
// The SDK passes that on without an error; here it is one, so that it is not
// taken for a stream without shards or a table without streams.

// DescribeStream is the SDK's. A good answer has a StreamDescription, whose
// shards have ids.
func (c *Client) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput, opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	out, err := c.Client.DescribeStream(ctx, in, opts...)
	if err != nil {
		return nil, err
	}
	if out.StreamDescription == nil {
		return nil, errors.New("DescribeStream: the answer holds no stream")
	}
	for _, sh := range out.StreamDescription.Shards {
		if aws.ToString(sh.ShardId) == "" {
			return nil, errors.New("DescribeStream: the answer holds a shard without an id")
		}
	}
	return out, nil
}

// ListStreams is the SDK's. A good answer has Streams, if only an empty list.
func (c *Client) ListStreams(ctx context.Context, in *dynamodbstreams.ListStreamsInput, opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.ListStreamsOutput, error) {
	out, err := c.Client.ListStreams(ctx, in, opts...)
	if err != nil {
		return nil, err
	}
	if out.Streams == nil {
		return nil, errors.New("ListStreams: the answer holds no list")
	}
	return out, nil
}
