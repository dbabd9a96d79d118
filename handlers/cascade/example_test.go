package cascade_test

import (
	"context"
	"fmt"
	"os"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/item"
)

// The points of a map go with it.
func Example() {
	maps, err := cascade.New(cascade.Config{
		Table: "maps", Key: []string{"user_id", "map_id"},
		Children: []cascade.Child{{
			Table: "points", Key: []string{"map_id", "point_id"},
			Partition: cascade.Attr{Name: "map_id", From: "map_id"},
		}},
		Get: func(context.Context, string, sluice.Item) (sluice.Item, error) { // store.Get
			return sluice.Item{}, nil // the map is gone
		},
		Query: func(context.Context, dynamo.Query) (dynamo.Page, error) { // store.Query
			return dynamo.Page{Items: []sluice.Item{item.Of(item.String("map_id", "m-1"), item.String("point_id", "p-1"))}}, nil
		},
		Delete: func(_ context.Context, d dynamo.GuardedDelete) { d.Done(d.Keys, nil) }, // store.DeleteGuarded
		Send: func(_ context.Context, m sluice.Message) error { // queue.Send
			fmt.Println(m.Body)
			return nil
		},
		Threshold: 0, // all by message
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	// Usually: r.Handle("map#REMOVE", maps.Remove, router.Redrive()) and
	// r.Handle("cascade.delete#MESSAGE", maps.Work).
	key := item.Of(item.String("user_id", "u-1"), item.String("map_id", "m-1"))
	ctx := context.Background()
	if err := maps.Remove(ctx, &sluice.Record{EventName: sluice.Remove, Table: "maps", Keys: key}); err != nil {
		fmt.Println(err)
	}

	// What would go?
	if _, err := maps.DryRun(ctx, os.Stdout, key); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"kind":"cascade.delete","table":"points","key":{"map_id":"m-1"},"parent":{"table":"maps","key":{"user_id":"u-1","map_id":"m-1"}},"dedupeKey":"maps/u-1/m-1"}
	// points {"map_id":{"S":"m-1"},"point_id":{"S":"p-1"}}
	// 1 row is a child of maps {"user_id":{"S":"u-1"},"map_id":{"S":"m-1"}}, which is gone
}
