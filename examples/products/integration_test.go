//go:build integration

package products

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item/sdkitem"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// The file on real servers: it makes index and documents, sends a message for a changed
// price, and deletes the document of a deleted item.
func TestServers(t *testing.T) {
	localtest.OpenSearch(t, testServers)
}

func testServers(t *testing.T, url string) {
	name := localtest.Name("products")
	services := map[string]aws.Config{"dynamodb": localtest.DynamoDB(t), "sqs": localtest.SQS(t)}
	db, queues := awsdynamodb.NewFromConfig(services["dynamodb"]), awssqs.NewFromConfig(services["sqs"])
	table, index, queue := name, name, name+"-prices"
	newTable(t, db, table)
	made, err := queues.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: &queue})
	if err != nil {
		t.Fatal(err)
	}

	c := load(t, map[string]string{"PRODUCTS_TABLE": table, "PRODUCTS_INDEX": index, "PRODUCTS_QUEUE": queue, "PRODUCTS_OPENSEARCH": url})
	app, err := c.Build(t.Context(), config.Setup{
		AWS: func(service string) aws.Config { return services[service] }, Check: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	p := app.Routes[0].Projection
	t.Cleanup(func() {
		if err := p.Client.Call(context.Background(), "DELETE", "/"+index+"-000001", nil, nil); err != nil {
			t.Error(err)
		}
	})

	put := func(v any) {
		t.Helper()
		if _, err := db.PutItem(t.Context(), &awsdynamodb.PutItemInput{TableName: &table, Item: sdkitem.Map(streamtest.Item(v))}); err != nil {
			t.Fatal(err)
		}
	}
	put(before)
	put(after)
	put(map[string]any{"sku": "p-2", "entityType": "product", "name": "Pot", "price": 9, "version": 1})
	key := map[string]types.AttributeValue{"sku": &types.AttributeValueMemberS{Value: "p-2"}}
	if _, err := db.DeleteItem(t.Context(), &awsdynamodb.DeleteItemInput{TableName: &table, Key: key}); err != nil {
		t.Fatal(err)
	}
	poll(t, services["dynamodb"], app, table)

	localtest.Await(t, "documents", func() string {
		docs, err := p.Client.Get(t.Context(), []document.Ref{{Index: index, ID: "p-1"}, {Index: index, ID: "p-2"}})
		if err != nil {
			return err.Error()
		}
		if docs[0].Version != 2 || !same(docs[0].Source, `{"sku":"p-1","name":"Kettle","price":25,"version":2}`) || docs[1].Found {
			return fmt.Sprintf("%+v %s", docs, docs[0].Source)
		}
		return ""
	})
	var bodies []string
	localtest.Await(t, "the message", func() string {
		out, err := queues.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: made.QueueUrl})
		if err != nil {
			return err.Error()
		}
		for _, m := range out.Messages {
			bodies = append(bodies, *m.Body)
		}
		if len(bodies) == 0 {
			return "there is none"
		}
		return ""
	})
	if len(bodies) != 1 || bodies[0] != `{"sku":"p-1","name":"Kettle","from":29,"to":25}` {
		t.Errorf("%q", bodies)
	}
	// The fields that the file maps have its types.
	var mapping json.RawMessage
	if err := p.Client.Call(t.Context(), "GET", "/"+index+"/_mapping", nil, &mapping); err != nil || !strings.Contains(string(mapping), `"sku":{"type":"keyword"}`) {
		t.Errorf("%s, %v", mapping, err)
	}
}

// The start reports a missing sink with its place in the file.
func TestSinksThatAreNotThere(t *testing.T) {
	services := map[string]aws.Config{"dynamodb": localtest.DynamoDB(t), "sqs": localtest.SQS(t)}
	c := load(t, map[string]string{"PRODUCTS_QUEUE": localtest.Name("none"), "PRODUCTS_OPENSEARCH": "http://127.0.0.1:1"})
	setup := config.Setup{AWS: func(service string) aws.Config { return services[service] }, Check: true, Logger: slog.New(slog.DiscardHandler)}
	_, err := c.Build(t.Context(), setup)
	if err == nil || !strings.Contains(err.Error(), "sluice.yaml:10:3: sinks.search: ") || !strings.Contains(err.Error(), "sinks.prices: ") || !strings.Contains(err.Error(), "there is no such queue") {
		t.Error(err)
	}
	setup.Check = false
	if _, err := c.Build(t.Context(), setup); err != nil {
		t.Error(err)
	}
	c.Routes = c.Routes[:0] // nobody uses them
	setup.Check = true
	if _, err := c.Build(t.Context(), setup); err != nil {
		t.Error(err)
	}
}

func newTable(t *testing.T, db *awsdynamodb.Client, table string) {
	t.Helper()
	_, err := db.CreateTable(t.Context(), &awsdynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("sku"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("sku"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.DeleteTable(context.Background(), &awsdynamodb.DeleteTableInput{TableName: &table}); err != nil {
			t.Error(err)
		}
	})
}

// poll reads the table's stream until the test ends.
func poll(t *testing.T, cfg aws.Config, app *config.App, table string) {
	t.Helper()
	p, err := poller.New(cfg, app.Router, poller.Options{
		Streams: []poller.Stream{{Table: table}}, Store: state.NewMemory(), Start: poller.TrimHorizon, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
