//go:build unix

// Command loop reads a shard's backlog by the loop that is usually written
// with the SDK: GetRecords, the new image into a struct, a switch.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice/bench/figures/tell"
	"github.com/sluicehq/sluice/bench/local"
)

type item struct {
	PK         string         `dynamodbav:"PK"`
	SK         string         `dynamodbav:"SK"`
	EntityType string         `dynamodbav:"entityType"`
	Name       string         `dynamodbav:"name"`
	Status     string         `dynamodbav:"status"`
	Version    int            `dynamodbav:"version"`
	Enabled    bool           `dynamodbav:"enabled"`
	Amount     float64        `dynamodbav:"amount"`
	Method     map[string]any `dynamodbav:"method"`
	Tags       []string       `dynamodbav:"tags"`
}

func main() {
	log.SetFlags(0)
	records, err := strconv.Atoi(os.Getenv(tell.EnvRecords))
	if err == nil {
		err = run(context.Background(), os.Getenv(tell.EnvStream), records)
	}
	if err != nil {
		log.Fatal("loop: ", err)
	}
}

func run(ctx context.Context, stream string, records int) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	client := dynamodbstreams.NewFromConfig(cfg, func(o *dynamodbstreams.Options) {
		o.BaseEndpoint = aws.String(os.Getenv("SLUICE_ENDPOINT_DYNAMODB"))
	})
	d, err := client.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &stream})
	if err != nil {
		return err
	}
	it, err := client.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &stream, ShardId: d.StreamDescription.Shards[0].ShardId, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		return err
	}
	var drained tell.Drained
	for iterator, handled := it.ShardIterator, 0; handled < records; {
		out, err := client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
		if err != nil {
			return err
		}
		if drained.First == 0 {
			drained.First = time.Now().UnixNano()
		}
		for i := range out.Records {
			if err := handle(&out.Records[i]); err != nil {
				return err
			}
		}
		handled += len(out.Records)
		iterator = out.NextShardIterator
	}
	drained.Last, drained.CPU = time.Now().UnixNano(), int64(local.CPU())
	tell.Say(tell.Line{Drained: &drained})
	return nil
}

func handle(rec *types.Record) error {
	image, err := attributevalue.FromDynamoDBStreamsMap(rec.Dynamodb.NewImage)
	if err != nil {
		return err
	}
	var it item
	if err := attributevalue.UnmarshalMap(image, &it); err != nil {
		return err
	}
	switch key := it.EntityType + "#" + string(rec.EventName); key {
	case "search#INSERT", "search#MODIFY", "searchAttempt#MODIFY", "contact#MODIFY", "contact#REMOVE", "contactMethod#MODIFY", "incident#MODIFY":
		return nil
	default:
		return fmt.Errorf("no case for %s", key)
	}
}
