//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/awsclient"
	"github.com/sluicehq/sluice/internal/parallel"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

const (
	ofMaps   = 10 // of users, each of whom has as many of them
	ofUsers  = 2
	counters = ofMaps + ofUsers
	perUnit  = 2 // counters of a record

	ofRound = 4000 // records that are counted in a transaction each

	// counting is how many records are being counted at a time. A handler that
	// waits in a sink gives its place to another, so that a flow has as many of
	// them as its window has records, 4,096.
	counting = 256

	counterName = "counters"
	markerName  = "markers"
)

// counterFigures counts records exactly, each on two counters as the estuve
// example does, its map and the map's user: with Once, whose callers share
// transactions, and with a transaction of its own for each record, as it is
// usually written.
func (b *bench) counterFigures(ctx context.Context) error {
	for _, table := range []string{counterName, markerName} {
		if err := local.Call(ctx, b.service.url, "CreateTable", fmt.Appendf(nil, `{"TableName":%q,"BillingMode":"PAY_PER_REQUEST",`+
			`"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}`, table), nil); err != nil {
			return err
		}
	}
	for i := range counters {
		if err := local.Call(ctx, b.service.url, "PutItem", fmt.Appendf(nil, `{"TableName":%q,"Item":{"pk":{"S":"%d"},"n":{"N":"0"}}}`, counterName, i), nil); err != nil {
			return err
		}
	}
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: &b.service.url, Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")}
	store, err := dynamodb.New(cfg, dynamodb.Options{})
	if err != nil {
		return err
	}
	// The peer has the connections and the requests that the Store has.
	peer := awsdynamodb.NewFromConfig(awsclient.Tuned(cfg, counting))
	c := &counted{}
	once := func(ctx context.Context, id string, counter int) error {
		_, err := store.Once(ctx, dynamo.Unit{
			Marker: dynamo.NewMarker(markerName, id, time.Now().Add(72*time.Hour)),
			Adds: []dynamo.Add{
				{Table: counterName, Key: counterKey(counter), By: map[string]int64{"n": 1}},
				{Table: counterName, Key: counterKey(userOf(counter)), By: map[string]int64{"n": 1}},
			},
		})
		return err
	}
	each := func(ctx context.Context, id string, counter int) error { return transactEach(ctx, peer, id, counter) }

	// How many at a time the peer does best with; the first run of each is to
	// warm up.
	best, bestRate := 0, 0.0
	for _, n := range []int{64, 1, 2, 4, 8, 16, 32, 64, counting} {
		rate, err := c.run(ctx, n, ofRound/2, each)
		if err != nil {
			return fmt.Errorf("a transaction for each record, %d at a time: %w", n, err)
		}
		b.logf("a transaction for each record, %d at a time: %.0f/s", n, rate)
		if rate > bestRate {
			best, bestRate = n, rate
		}
	}
	if _, err := c.run(ctx, counting, ofRound, once); err != nil {
		return fmt.Errorf("Once: %w", err)
	}
	var ratios []float64
	for range b.rounds {
		theirs, err := c.run(ctx, best, ofRound, each)
		if err != nil {
			return fmt.Errorf("a transaction for each record: %w", err)
		}
		ours, err := c.run(ctx, counting, 4*ofRound, once)
		if err != nil {
			return fmt.Errorf("Once: %w", err)
		}
		b.logf("Once: %.0f/s, %d at a time; a transaction for each record: %.0f/s, %d at a time; %.1f times", ours, counting, theirs, best, ours/theirs)
		ratios = append(ratios, ours/theirs)
	}
	if err := b.exact(ctx, c); err != nil {
		return err
	}
	fmt.Printf("ratio counter_transactions %.1f\n", local.Median(ratios))
	return nil
}

// counted is the expected values of the counters.
type counted struct {
	ids  atomic.Int64
	sums [counters]atomic.Int64
}

// run has n goroutines count records and returns how many a second.
func (c *counted) run(ctx context.Context, n, records int, count func(context.Context, string, int) error) (float64, error) {
	var left atomic.Int64
	left.Store(int64(records))
	errs := make([]error, n)
	begin := time.Now()
	parallel.Do(n, n, func(i int) {
		for left.Add(-1) >= 0 {
			counter := rand.IntN(ofMaps)
			if errs[i] = count(ctx, strconv.FormatInt(c.ids.Add(1), 10), counter); errs[i] != nil {
				return
			}
			c.sums[counter].Add(1)
			c.sums[userOf(counter)].Add(1)
		}
	})
	return float64(records) / time.Since(begin).Seconds(), errors.Join(errs...)
}

// userOf is the counter of a map's user.
func userOf(counter int) int { return ofMaps + counter%ofUsers }

func counterKey(i int) sluice.Item { return item.Of(item.String("pk", strconv.Itoa(i))) }

// transactEach counts one record: its marker and the additions in one
// transaction, which is made again, after a moment, when it is in conflict.
func transactEach(ctx context.Context, db *awsdynamodb.Client, id string, counter int) error {
	in := &awsdynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{
			TableName:           aws.String(markerName),
			Item:                map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: id}, "ttl": &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(72*time.Hour).Unix(), 10)}},
			ConditionExpression: aws.String("attribute_not_exists(pk)"),
		}},
	}}
	for _, i := range [perUnit]int{counter, userOf(counter)} {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Update: &types.Update{
			TableName:                 aws.String(counterName),
			Key:                       map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: strconv.Itoa(i)}},
			UpdateExpression:          aws.String("ADD n :one"),
			ConditionExpression:       aws.String("attribute_exists(pk)"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		}})
	}
	for try := 0; ; try++ {
		_, err := db.TransactWriteItems(ctx, in)
		var cancelled *types.TransactionCanceledException
		if !errors.As(err, &cancelled) || !slices.ContainsFunc(cancelled.CancellationReasons, func(r types.CancellationReason) bool {
			return aws.ToString(r.Code) == "TransactionConflict"
		}) {
			return err
		}
		time.Sleep(rand.N(time.Millisecond << min(try, 6)))
	}
}

// exact fails when a counter differs from the real count.
func (b *bench) exact(ctx context.Context, c *counted) error {
	for i := range counters {
		var out struct {
			Item map[string]map[string]string
		}
		if err := local.Call(ctx, b.service.url, "GetItem", fmt.Appendf(nil, `{"TableName":%q,"ConsistentRead":true,"Key":{"pk":{"S":"%d"}}}`, counterName, i), &out); err != nil {
			return err
		}
		if got, want := out.Item["n"]["N"], strconv.FormatInt(c.sums[i].Load(), 10); got != want {
			return fmt.Errorf("counter %d shows %s, and %s were counted", i, got, want)
		}
	}
	return nil
}
