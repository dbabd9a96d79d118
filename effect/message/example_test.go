package message_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
)

// An order that nobody has paid for two hours is looked at again. The handler
// does not wait: the queue does.
func ExampleLater() {
	now := time.Date(2019, 12, 30, 19, 32, 14, 0, time.UTC)
	clock := func() time.Time { return now }
	var sent []sluice.Message // a queue; sinks/sqs.Queue.Send in a program
	send := func(_ context.Context, m sluice.Message) error {
		sent = append(sent, m)
		return nil
	}
	later := message.Later(send, message.Options{Now: clock})
	r := router.New()
	r.Handle("order#INSERT", func(ctx context.Context, rec *sluice.Record) error {
		return later(ctx, message.Check{Kind: "order.unpaid", Table: rec.Table, Key: rec.Keys, NotBefore: now.Add(2 * time.Hour)})
	})
	r.Handle("order.unpaid#MESSAGE", func(_ context.Context, rec *sluice.Record) error {
		c, err := message.ReadCheck(rec)
		if err != nil {
			return err
		}
		pk, _ := c.Key.Lookup("pk")
		fmt.Println("looking at order", pk.Str(), "of table", c.Table)
		return nil
	}, router.Use(message.Hop(send, message.Options{Now: clock})))

	order := item.Of(item.String("pk", "o-1"), item.String("entityType", "order"))
	ctx := context.Background()
	_ = r.Dispatch(ctx, &sluice.Record{EventName: sluice.Insert, Table: "orders", Keys: order.Only("pk"), New: order})
	for i := 0; i < len(sent); i++ { // the queue delivers
		now = now.Add(sent[i].Delay)
		sent[i].ID = fmt.Sprint("m-", i)
		_ = r.Dispatch(ctx, sent[i].Record("arn:aws:sqs:eu-west-1:123456789012:checks"))
	}
	fmt.Println("after", len(sent), "messages")
	// Output:
	// looking at order o-1 of table orders
	// after 8 messages
}
