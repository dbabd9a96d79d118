//go:build unix

package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

const (
	cascadeRows  = 50_000
	limitedRows  = 10_000               // each is a request
	cascadeCalls = 5 * time.Millisecond // of the service, each
)

// cascadeFigures deletes the children of one parent, by the loop that people
// write and by handlers/cascade with sinks/dynamodb, in turns.
func (b *bench) cascadeFigures(ctx context.Context) error {
	var loop, ours, limited []float64
	for round := range b.rounds {
		for i := range 2 {
			way, out := cascadeWay(b.loopCascade), &loop
			if (i+round)%2 > 0 {
				way, out = byStore(cascade.Limit{}), &ours
			}
			rate, s, err := b.cascade(ctx, cascadeRows, way)
			if err != nil {
				return err
			}
			*out = append(*out, rate)
			b.logf("%.0f rows/s in %d calls", rate, s.calls)
		}
		rate, s, err := b.cascade(ctx, limitedRows, byStore(cascade.Limit{Name: "version", From: "version"}))
		if err != nil {
			return err
		}
		limited = append(limited, rate)
		b.logf("%.0f rows/s by condition in %d calls", rate, s.calls)
	}
	fmt.Printf("ratio cascade_delete %.1f\n", local.Median(ours)/local.Median(loop))
	fmt.Printf("ratio cascade_delete_by_condition %.2f\n", local.Median(limited)/local.Median(loop))
	return nil
}

type cascadeWay func(ctx context.Context, cfg aws.Config) error

// cascade measures one way, in rows a second.
func (b *bench) cascade(ctx context.Context, rows int, way cascadeWay) (rate float64, s *cascadeService, err error) {
	s = newCascadeService(rows, cascadeCalls)
	server := httptest.NewServer(s)
	defer server.Close()
	begin := time.Now()
	if err := way(ctx, aws.Config{
		Region: "us-east-1", BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	}); err != nil {
		return 0, s, err
	}
	took := time.Since(begin)
	if s.left > 0 {
		return 0, s, fmt.Errorf("%d of %d rows are left", s.left, rows)
	}
	return float64(rows) / took.Seconds(), s, nil
}

// byStore is the program of a user, which deletes each row under a limit.
func byStore(limit cascade.Limit) cascadeWay {
	return func(ctx context.Context, cfg aws.Config) error { return storeCascade(ctx, cfg, limit) }
}

func storeCascade(ctx context.Context, cfg aws.Config, limit cascade.Limit) error {
	store, err := dynamodb.New(cfg, dynamodb.Options{})
	if err != nil {
		return err
	}
	maps, err := cascade.New(cascade.Config{
		Table: "maps", Key: []string{"map_id"},
		Children: []cascade.Child{{
			Table: "points", Key: []string{"map_id", "point_id"},
			Partition: cascade.Attr{Name: "map_id", From: "map_id"}, NotNewer: limit,
		}},
		Get: store.Get, Query: store.Query, Delete: store.DeleteGuarded,
		Threshold: cascade.Unlimited,
	})
	if err != nil {
		return err
	}
	key := item.Of(item.String("map_id", "m-1"))
	return maps.Remove(ctx, &sluice.Record{EventName: sluice.Remove, Table: "maps", Keys: key, Old: key.With(item.Number("version", "1"))})
}

// loopCascade is the usual loop: pages of keys, deleted 25 at a time, one request
// after another, and unprocessed keys once more.
func (b *bench) loopCascade(ctx context.Context, cfg aws.Config) error {
	client := sdk.NewFromConfig(cfg)
	pages := sdk.NewQueryPaginator(client, &sdk.QueryInput{
		TableName: aws.String("points"), ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("map_id = :m"),
		ProjectionExpression:      aws.String("map_id, point_id"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":m": &types.AttributeValueMemberS{Value: "m-1"}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		var requests []types.WriteRequest
		for _, it := range page.Items {
			requests = append(requests, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: it}})
		}
		for len(requests) > 0 {
			n := min(25, len(requests))
			left := map[string][]types.WriteRequest{"points": requests[:n]}
			requests = requests[n:]
			for wait := 50 * time.Millisecond; len(left) > 0; wait *= 2 {
				out, err := client.BatchWriteItem(ctx, &sdk.BatchWriteItemInput{RequestItems: left})
				if err != nil {
					return err
				}
				if left = out.UnprocessedItems; len(left) > 0 {
					time.Sleep(wait)
				}
			}
		}
	}
	return nil
}
