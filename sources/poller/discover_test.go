package poller

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
)

// describes answers DescribeStream.
type describes func(from string) ([]string, error)

func (f describes) DescribeStream(_ context.Context, in *dynamodbstreams.DescribeStreamInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	ids, err := f(aws.ToString(in.ExclusiveStartShardId))
	d := &types.StreamDescription{}
	for _, id := range ids {
		d.Shards = append(d.Shards, types.Shard{ShardId: &id})
		d.LastEvaluatedShardId = &id
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d}, err
}

// A shard may be trimmed while the page after it is asked for. Then the listing
// begins anew.
func TestListingBehindATrimmedShard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		first := true
		d := newDiscovery(describes(func(from string) ([]string, error) {
			switch {
			case from == "" && first:
				first = false
				return []string{"a"}, nil
			case from == "a":
				return nil, &smithy.GenericAPIError{Code: "ValidationException"}
			case from == "":
				return []string{"b"}, nil
			}
			return nil, nil
		}), "arn", time.Second)
		d.failed = func(string, error, kind, time.Duration) {}
		l, err := d.list(t.Context())
		var ids []string
		for _, sh := range l.shards {
			ids = append(ids, sh.ID)
		}
		if err != nil || strings.Join(ids, " ") != "b" {
			t.Errorf("%v, %v", ids, err)
		}
	})
}
