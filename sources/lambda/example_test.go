package lambda_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/lambda"
)

// A function's main calls lambda.Start(r, …); a test can hand an event to the
// same routes. The second record fails, so the answer names it.
func ExampleNewHandler() {
	r := router.New()
	r.Handle("search#INSERT", func(_ context.Context, rec *sluice.Record) error {
		if name, _ := rec.New.Lookup("name"); name.Str() == "" {
			return errors.New("a search needs a name")
		}
		return nil
	})
	h := lambda.NewHandler(r, lambda.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})

	answer, err := h.Invoke(context.Background(), []byte(`{"Records":[
		{"eventName":"INSERT","dynamodb":{"SequenceNumber":"99900000000054786958328","Keys":{"pk":{"S":"a"}},
		 "NewImage":{"pk":{"S":"a"},"entityType":{"S":"search"},"name":{"S":"Ida"}}}},
		{"eventName":"INSERT","dynamodb":{"SequenceNumber":"100000000000054786958329","Keys":{"pk":{"S":"b"}},
		 "NewImage":{"pk":{"S":"b"},"entityType":{"S":"search"}}}}]}`))
	fmt.Println(string(answer), err)
	// Output: {"batchItemFailures":[{"itemIdentifier":"100000000000054786958329"}]} <nil>
}
