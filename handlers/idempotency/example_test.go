package idempotency_test

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/handlers/idempotency"
	"github.com/sluicehq/sluice/item"
)

func ExampleOnce() {
	var row sluice.Item // store.Write writes to a table
	write := func(_ context.Context, op dynamo.Op) error {
		switch op.Kind {
		case dynamo.PutOp:
			if row.Exists() {
				return &dynamo.ConditionError{Failed: []int{0}, Items: []sluice.Item{row}, Tables: []string{op.Table}}
			}
			row = op.Item
		case dynamo.UpdateOp:
			row = row.With(item.String("status", "COMPLETED"))
		}
		return nil
	}
	once := idempotency.Once("welcome mail", idempotency.Options{Table: "idempotency", Write: write})
	welcome := once(func(_ context.Context, rec *sluice.Record) error {
		fmt.Println("welcome!")
		return nil
	})
	// Usually: r.Handle("user#INSERT", welcome).
	rec := &sluice.Record{EventID: "e-1", EventName: sluice.Insert, Table: "users"}
	fmt.Println(welcome(context.Background(), rec))
	fmt.Println(welcome(context.Background(), rec))
	// Output:
	// welcome!
	// <nil>
	// skipped: already done
}
