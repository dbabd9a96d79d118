package router_test

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
)

// The record of a search that was answered, as a Lambda event holds it.
const answered = `{"eventID":"e1","eventName":"MODIFY","eventSource":"aws:dynamodb","awsRegion":"us-east-1",
"eventSourceARN":"arn:aws:dynamodb:us-east-1:000000000000:table/manhunt/stream/2019-12-30T00:00:00.000",
"dynamodb":{"SequenceNumber":"100000000000000000001","StreamViewType":"NEW_AND_OLD_IMAGES",
"Keys":{"PK":{"S":"a271244"}},
"OldImage":{"PK":{"S":"a271244"},"entityType":{"S":"search"},"status":{"S":"active"}},
"NewImage":{"PK":{"S":"a271244"},"entityType":{"S":"search"},"status":{"S":"successful"}}}}`

func Example() {
	r := router.New()
	r.Handle("search#INSERT", func(ctx context.Context, rec *sluice.Record) error {
		fmt.Println("opened")
		return nil
	})
	r.Handle("search#MODIFY", func(ctx context.Context, rec *sluice.Record) error {
		to, _ := rec.New.Lookup("status")
		fmt.Println("now", to.Str())
		return nil
	}, router.Changed("status"))
	r.Handle("*#*", func(ctx context.Context, rec *sluice.Record) error {
		fmt.Println("seen", rec.EventName)
		return nil
	}, router.Name("log"))

	// A flow, which every source has, runs the routes with retries and limits;
	// here they run at once.
	rec := sluice.DecodeRecord([]byte(answered))
	fmt.Println(r.Dispatch(context.Background(), rec))
	// Output:
	// now successful
	// seen MODIFY
	// <nil>
}

func ExampleRouter_Add() {
	nothing := func(context.Context, *sluice.Record) error { return nil }
	r := router.New()
	fmt.Println(r.Add("app.yaml:3", "search#INSERT", nothing))
	fmt.Println(r.Add("app.yaml:9", "search#INSERT", nothing))
	fmt.Println(r.Add("app.yaml:12", "search#CREATE", nothing))
	// Output:
	// <nil>
	// app.yaml:9: route "search#INSERT" is already registered at app.yaml:3; give one of them another Name
	// app.yaml:12: pattern "search#CREATE": at byte 7: unknown event "CREATE"; want INSERT, MODIFY, REMOVE, SNAPSHOT, MESSAGE or *
}

// Three tables tell the type of their items in three ways.
func ExampleByTable() {
	types := router.ByTable(map[string]router.Resolver{
		"manhunt":    router.Attribute("entityType"),
		"meadowlark": router.KeyPattern("pk", "TYPE#*#*#{type}"),
		"orders":     router.Table(map[string]string{"orders": "order"}),
	})
	typ, err := types.Type(sluice.DecodeRecord([]byte(answered)))
	fmt.Println(typ, err)

	r := router.New(router.TypeFrom(types))
	r.Handle("search#* School#* order#REMOVE", func(context.Context, *sluice.Record) error { return nil })
	fmt.Println(r.Routes()[0].Name)
	// Output:
	// search <nil>
	// search#*,School#*,order#REMOVE
}
