//go:build integration

package config

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sources/poller"
	consumer "github.com/sluicehq/sluice/sources/queue"
	"github.com/sluicehq/sluice/state"
)

// Points are counted. When a map is deleted, messages delete its points; the
// application consumes their queue itself.
func TestCountAndCascadeOnServers(t *testing.T) {
	services := map[string]aws.Config{"dynamodb": localtest.DynamoDB(t), "sqs": localtest.SQS(t)}
	prefix := localtest.Name("count") + "-"
	db := awsdynamodb.NewFromConfig(services["dynamodb"])
	for name, key := range map[string][]string{"users": {"user_id"}, "maps": {"user_id", "map_id"}, "points": {"map_id", "point_id"}, "markers": {"pk"}} {
		newTable(t, db, prefix+name, key)
	}
	name := prefix + "cascades"
	if _, err := awssqs.NewFromConfig(services["sqs"]).CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: &name}); err != nil {
		t.Fatal(err)
	}

	c := mapsFile()
	byTable := map[string]string{}
	for i, table := range c.Source.Tables {
		c.Source.Tables[i] = prefix + table
		byTable[prefix+table] = c.EntityType.Tables[table]
	}
	c.EntityType.Tables = byTable
	c.Sinks["cascades"].SQS.Queue = name
	n := c.Routes[0].Count
	n.Markers, n.DeleteOrphans = prefix+n.Markers, prefix+n.DeleteOrphans
	for i := range n.Numbers {
		n.Numbers[i].Table = prefix + n.Numbers[i].Table
	}
	for _, rt := range c.Routes[1:] {
		for i := range rt.Cascade.Children {
			rt.Cascade.Children[i].Table = prefix + rt.Cascade.Children[i].Table
		}
	}
	c.Routes[1].Cascade.Threshold = new(0) // delete every row by messages
	app, err := build(t, c, Setup{
		AWS: func(service string) aws.Config { return services[service] }, Check: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}

	store, err := dynamodb.New(services["dynamodb"], dynamodb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range []struct{ table, item string }{
		{"users", `{"user_id":"u"}`}, {"maps", `{"user_id":"u","map_id":"m"}`}, {"maps", `{"user_id":"u","map_id":"n"}`},
		{"points", `{"map_id":"m","point_id":"1","user_id":"u"}`}, {"points", `{"map_id":"m","point_id":"2","user_id":"u"}`},
		{"points", `{"map_id":"n","point_id":"3","user_id":"u"}`}, {"points", `{"map_id":"gone","point_id":"4","user_id":"u"}`},
	} {
		if err := store.Put(t.Context(), prefix+it.table, plain(it.item)); err != nil {
			t.Fatal(err)
		}
	}
	consume(t, services, app)
	number := func(table, key string) string {
		it, err := store.Get(t.Context(), prefix+table, plain(key))
		if err != nil {
			t.Fatal(err)
		}
		v, _ := it.Lookup("points")
		return v.Str()
	}
	await := func(user, n string, points int) {
		t.Helper()
		localtest.Await(t, "points are counted", func() string {
			left := 0
			for _, m := range []string{"m", "n", "gone"} {
				q := dynamo.Query{Table: prefix + "points", Partition: item.String("map_id", m)}
				for _, err := range dynamo.All(t.Context(), store.Query, q) {
					if err != nil {
						t.Fatal(err)
					}
					left++
				}
			}
			if u, n2 := number("users", `{"user_id":"u"}`), number("maps", `{"user_id":"u","map_id":"n"}`); u != user || n2 != n || left != points {
				return fmt.Sprintf("user %s, map %s, %d points", u, n2, left)
			}
			return ""
		})
	}
	await("3", "1", 3)
	if err := store.Delete(t.Context(), prefix+"maps", plain(`{"user_id":"u","map_id":"m"}`)); err != nil {
		t.Fatal(err)
	}
	await("1", "1", 1)
}

// consume reads the streams and queues of an application until the test ends.
func consume(t *testing.T, services map[string]aws.Config, app *App) {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	var streams []poller.Stream
	for _, table := range app.Tables {
		streams = append(streams, poller.Stream{Table: table})
	}
	p, err := poller.New(services["dynamodb"], app.Router, poller.Options{Streams: streams, Store: state.NewMemory(), Start: poller.TrimHorizon, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	q, err := consumer.New(services["sqs"], app.Router, consumer.Options{Queues: app.Queues, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- p.Run(ctx) }()
	go func() { ended <- q.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

func newTable(t *testing.T, db *awsdynamodb.Client, table string, key []string) {
	t.Helper()
	in := &awsdynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest,
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	}
	for i, name := range key {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &name, KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
	}
	if _, err := db.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.DeleteTable(context.Background(), &awsdynamodb.DeleteTableInput{TableName: &table}); err != nil {
			t.Error(err)
		}
	})
}
