package dynamodb_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

// A handler that keeps the last state of an order in a table.
func Example() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		fmt.Fprint(w, `{"UnprocessedItems":{}}`)
	}))
	defer service.Close()
	cfg := aws.Config{
		Region: "us-east-1", BaseEndpoint: &service.URL, HTTPClient: service.Client(),
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	}

	store, err := dynamodb.New(cfg, dynamodb.Options{
		Keys:   map[string][]string{"archive": {"id"}}, // saves the permission dynamodb:DescribeTable
		Budget: map[string]float64{"archive": 500},     // write units a second
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := func(ctx context.Context, rec *sluice.Record) error {
		return store.Put(ctx, "archive", rec.New)
	}

	fmt.Println(handler(context.Background(), &sluice.Record{New: item.Of(item.String("id", "o-1"), item.Number("total", "9.90"))}))
	fmt.Println(handler(context.Background(), &sluice.Record{New: item.Of(item.Number("total", "9.90"))}))
	// Output:
	// <nil>
	// dynamodb: table "archive": the item has not all of the key attributes ["id"]
}
