package deadletter_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// A handler that could not cope with a record is mended; the record is run
// through it again.
func ExampleBox_Redrive() {
	ctx := context.Background()
	rec := sluice.DecodeRecord([]byte(`{
		"eventID": "c4ca4238", "eventName": "INSERT", "awsRegion": "us-east-1",
		"eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000",
		"dynamodb": {
			"SequenceNumber": "100000000003498069978",
			"Keys": {"id": {"S": "o-1"}},
			"NewImage": {"id": {"S": "o-1"}, "entityType": {"S": "order"}}
		}
	}`))
	box := deadletter.NewBox(state.NewMemory(), "shop")

	// What a flow does with a record that failed for good.
	err := box.Park(ctx, rec, sluice.Failure{Route: "order#INSERT", Attempts: 8, Last: errors.New("no total")})
	if err != nil {
		fmt.Println(err)
	}

	entries, _, err := box.List(ctx, "", 10)
	if err != nil {
		fmt.Println(err)
	}
	for _, e := range entries {
		fmt.Println(e.Table, e.Route, e.Attempts, e.Last.Error)
	}

	r := router.New()
	r.Handle("order#INSERT", func(_ context.Context, rec *sluice.Record) error {
		id, _ := rec.New.Lookup("id")
		fmt.Println("handled", id.Str(), rec.Origin)
		return nil
	}, router.Redrive())
	report, err := box.RedriveAll(ctx, r, deadletter.Filter{}, deadletter.How{})
	fmt.Println(report.Done, "done,", report.Failed, "failed", err)
	// Output:
	// orders order#INSERT 8 no total
	// handled o-1 redriven
	// 1 done, 0 failed <nil>
}
