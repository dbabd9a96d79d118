package streamtest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// client is the SDK's, without its retries.
func client(s *Service) *dynamodbstreams.Client {
	return dynamodbstreams.NewFromConfig(s.Config(), func(o *dynamodbstreams.Options) { o.Retryer = aws.NopRetryer{} })
}

func TestPlainCase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewService(t)
		table := s.CreateTable("orders", TableOptions{})
		table.Put(map[string]any{"pk": "a", "n": 1})
		table.Put(`{"pk":{"S":"a"},"n":{"N":"2"}}`)
		table.Put(`{"n":{"N":"2.0"},"pk":{"S":"a"}}`) // nothing changes
		table.Delete(map[string]any{"pk": "a"})

		out, err := dynamodb.NewFromConfig(s.Config()).DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("orders")})
		if err != nil {
			t.Fatal(err)
		}
		arn := out.Table.LatestStreamArn
		c := client(s)
		d, err := c.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
		if err != nil || len(d.StreamDescription.Shards) != 1 {
			t.Fatal(d, err)
		}
		it, err := c.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
			StreamArn: arn, ShardId: d.StreamDescription.Shards[0].ShardId, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
		})
		if err != nil {
			t.Fatal(err)
		}
		page, err := c.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it.ShardIterator})
		if err != nil {
			t.Fatal(err)
		}
		var got []types.OperationType
		for _, r := range page.Records {
			got = append(got, r.EventName)
		}
		if fmt.Sprint(got) != "[INSERT MODIFY REMOVE]" || page.NextShardIterator == nil {
			t.Errorf("%v, next %v", got, page.NextShardIterator)
		}
		if at := page.Records[0].Dynamodb.ApproximateCreationDateTime; !at.Equal(time.Now().Truncate(time.Second)) {
			t.Errorf("created at %v", at)
		}
	})
}
