package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/streamsapi"
)

// world is the demo's own view of the servers, through plain SDK clients: it
// writes as an application would and looks at queues as a consumer would.
type world struct {
	stack   *localstack.Stack
	table   *manhunt.Table
	cfg     aws.Config // of db
	db      *dynamodb.Client
	queues  *sqs.Client
	streams *streamsapi.Client
}

func newWorld(stack *localstack.Stack, table string) (w *world, err error) {
	cfg := aws.Config{
		Region:      "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	}
	w = &world{stack: stack}
	db := cfg
	db.BaseEndpoint = &stack.DynamoDB
	w.db, w.cfg = dynamodb.NewFromConfig(db), db
	if w.table, err = manhunt.Open(db, table); err != nil {
		return nil, err
	}
	w.queues = sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.BaseEndpoint = &stack.SQS })
	w.streams = streamsapi.New(db)
	return w, nil
}

func (w *world) createQueue(ctx context.Context, name string) (url string, err error) {
	out, err := w.queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		return "", fmt.Errorf("create queue %s: %w", name, err)
	}
	return aws.ToString(out.QueueUrl), nil
}

type message struct {
	body string
	at   time.Time
}

// receive takes the next message from a queue. Its error is the cause of the end of ctx
// if that comes first.
func (w *world) receive(ctx context.Context, url string) (m message, err error) {
	for {
		out, err := w.queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 1, WaitTimeSeconds: 1})
		switch {
		case ctx.Err() != nil:
			return m, context.Cause(ctx)
		case err != nil:
			return m, fmt.Errorf("receive from %s: %w", url, err)
		case len(out.Messages) == 0:
			continue
		}
		m = message{body: aws.ToString(out.Messages[0].Body), at: time.Now()}
		_, err = w.queues.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: out.Messages[0].ReceiptHandle})
		if err != nil {
			return m, fmt.Errorf("delete from %s: %w", url, err)
		}
		return m, nil
	}
}

// lambdaEvent reads n records from the table's stream and wraps them as the
// event source mapping does: the service's own bytes, and the stream's ARN.
func (w *world) lambdaEvent(ctx context.Context, table string, n int) ([]byte, error) {
	described, err := w.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return nil, fmt.Errorf("describe table %s: %w", table, err)
	}
	streamARN := aws.ToString(described.Table.LatestStreamArn)
	desc, err := w.streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &streamARN})
	if err != nil {
		return nil, fmt.Errorf("describe stream: %w", err)
	}
	if len(desc.StreamDescription.Shards) != 1 {
		return nil, fmt.Errorf("stream has %d shards, want the one of DynamoDB Local", len(desc.StreamDescription.Shards))
	}
	it, err := w.streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &streamARN, ShardId: desc.StreamDescription.Shards[0].ShardId,
		ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		return nil, fmt.Errorf("get shard iterator: %w", err)
	}
	var records []map[string]json.RawMessage
	arn, err := json.Marshal(streamARN)
	if err != nil {
		return nil, err
	}
	for next := aws.ToString(it.ShardIterator); next != "" && len(records) < n; {
		body, err := w.streams.GetRecords(ctx, next, 0)
		if err != nil {
			return nil, fmt.Errorf("get records: %w", err)
		}
		var page struct {
			NextShardIterator string
			Records           []map[string]json.RawMessage
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return nil, fmt.Errorf("get records: %w", err)
		}
		next = page.NextShardIterator
		for _, r := range page.Records {
			r["eventSourceARN"] = arn
			records = append(records, r)
		}
	}
	if len(records) != n {
		return nil, fmt.Errorf("the stream holds %d records, want %d", len(records), n)
	}
	return json.Marshal(map[string]any{"Records": records})
}
