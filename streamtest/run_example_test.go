package streamtest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// shop is an application under test: new orders are sent to a queue.
func shop(send func(context.Context, string) error) *router.Router {
	r := router.New()
	r.Handle("order#INSERT", func(ctx context.Context, rec *sluice.Record) error {
		total, ok := rec.New.Lookup("total")
		if !ok {
			return sluice.Permanent(errors.New("no total"))
		}
		id, _ := rec.Keys.Lookup("pk")
		return send(ctx, id.Str()+" costs "+total.Str())
	}, router.NeedsNew())
	return r
}

// Records go through a router and its handlers, without a source and without
// waiting. The sink fails once; the record is tried again.
func ExampleRun() {
	var queue streamtest.Sink[string]
	queue.FailNth(2, errors.New("throttled"))

	result := streamtest.Run(context.Background(), shop(queue.Send),
		streamtest.Insert("orders", map[string]any{"pk": "o1", "entityType": "order", "total": 25}),
		streamtest.Insert("orders", `{"pk":{"S":"o2"},"entityType":{"S":"order"},"total":{"N":"7.5"}}`),
		streamtest.Insert("orders", map[string]any{"pk": "o3", "entityType": "order"}),
		streamtest.Remove("orders", map[string]any{"pk": "o1", "entityType": "order"}),
	)
	fmt.Print(result)
	fmt.Println(queue.Values())
	// Output:
	// 0 INSERT {"pk":"o1"} order#INSERT: done
	// 1 INSERT {"pk":"o2"} order#INSERT: done after 2 calls
	// 2 INSERT {"pk":"o3"} order#INSERT: parked: no total
	// 3 REMOVE {"pk":"o1"}: unrouted
	// [o1 costs 25 o2 costs 7.5]
}

// Single outcomes can be looked at, and what was parked. Items run beside each
// other as in production.
func ExampleRunWith() {
	var letters streamtest.DeadLetters
	result := streamtest.RunWith(context.Background(), flow.Options{Concurrency: 16, DeadLetter: &letters}, shop(nil),
		streamtest.Insert("orders", map[string]any{"pk": "o3", "entityType": "order"}),
	)
	outcome := result.Of(0)[0]
	fmt.Println(outcome.Result == flow.Parked, outcome.Calls, outcome.Err)
	for _, l := range letters.Values() {
		fmt.Println(l.Record.Table, l.Failure.Route, l.Failure.Last)
	}
	// Output:
	// true 1 no total
	// orders order#INSERT no total
}

// A record is what a source would make of it; options say what is special.
func ExampleModify() {
	rec := streamtest.Modify("orders",
		map[string]any{"customer": "c1", "number": 17, "status": "new"},
		map[string]any{"customer": "c1", "number": 17, "status": "paid"},
		streamtest.WithKeys("customer", "number"),
		streamtest.WithView(item.NewImage),
		streamtest.WithSequence("4000000000000000000001"),
	)
	fmt.Println(rec.EventName, rec.Table, rec.Sequence, rec.ViewType)
	fmt.Printf("%s\n%s\n%v\n", rec.Keys.Raw(), rec.New.Raw(), rec.Old.Exists())
	// Output:
	// MODIFY orders 4000000000000000000001 NEW_IMAGE
	// {"customer":{"S":"c1"},"number":{"N":"17"}}
	// {"customer":{"S":"c1"},"number":{"N":"17"},"status":{"S":"paid"}}
	// false
}

// A Lambda function is called with an event.
func ExampleEvent() {
	event := streamtest.Event(
		streamtest.Insert("orders", `{"pk":{"S":"o1"}}`),
		streamtest.Expire("orders", `{"pk":{"S":"o1"}}`),
	)
	page, err := sluice.DecodeEvent(event)
	fmt.Println(len(page.Records), page.Records[1].IsTTL(), err)
	// Output: 2 true <nil>
}

// A recording handler shows which records a route takes, and in what order.
func ExampleHandler() {
	var paid streamtest.Handler
	r := router.New(router.TypeFrom(router.Table(nil)))
	r.Handle("orders#MODIFY", paid.Handle, router.Changed("status"))

	streamtest.Run(context.Background(), r,
		streamtest.Modify("orders", `{"pk":{"S":"o1"},"status":{"S":"new"}}`, `{"pk":{"S":"o1"},"status":{"S":"paid"}}`),
		streamtest.Modify("orders", `{"pk":{"S":"o2"},"status":{"S":"new"}}`, `{"pk":{"S":"o2"},"status":{"S":"new"},"note":{"S":"gift"}}`),
	)
	for _, rec := range paid.Values() {
		fmt.Printf("%s\n", rec.Keys.Raw())
	}
	// Output: {"pk":{"S":"o1"}}
}

// Handlers that take an interface or other parameters are given a closure.
// FailIf lasts until it is removed.
func ExampleSink_FailIf() {
	type document struct{ ID, Body string }
	var index streamtest.Sink[document]
	put := func(ctx context.Context, id string, body []byte) error {
		return index.Send(ctx, document{id, string(body)})
	}
	heal := index.FailIf(func(d document) bool { return d.ID == "a" }, errors.New("mapping conflict"))

	ctx := context.Background()
	fmt.Println(put(ctx, "a", []byte("1")), put(ctx, "b", []byte("2")))
	heal()
	fmt.Println(put(ctx, "a", []byte("3")))
	fmt.Println(index.Values())
	for _, c := range index.Calls() {
		fmt.Println(c.Value.ID, c.Err)
	}
	// Output:
	// mapping conflict <nil>
	// <nil>
	// [{b 2} {a 3}]
	// a mapping conflict
	// b <nil>
	// a <nil>
}
