package rollup_test

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/item"
)

// A book that is lent counts at its reader, and moves with it.
func Example() {
	loans, err := rollup.New(rollup.Config{
		Name:    "loans",
		Counts:  []rollup.Count{{Table: "readers", Attribute: "books", Key: rollup.By("reader")}},
		Markers: "markers",
		Once: func(_ context.Context, u dynamo.Unit) (dynamo.Applied, error) { // store.Once
			for _, add := range u.Adds {
				fmt.Printf("%s %s: %+d\n", add.Table, add.Key.Raw(), add.By["books"])
			}
			return dynamo.Applied{}, nil
		},
		Get: func(context.Context, string, sluice.Item) (sluice.Item, error) { return sluice.Item{}, nil }, // store.Get
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Usually: r.Handle("book#*", loans.Handle, router.NeedsBoth(), router.Redrive()).
	lent := func(reader string) sluice.Item {
		return item.Of(item.String("isbn", "0-13-110362-8"), item.String("reader", reader))
	}
	err = loans.Handle(context.Background(), &sluice.Record{
		EventID: "e-1", EventName: sluice.Modify, Table: "books", Created: time.Now(), Old: lent("al"), New: lent("bo"),
	})
	fmt.Println(err)
	// Output:
	// readers {"reader":{"S":"al"}}: -1
	// readers {"reader":{"S":"bo"}}: +1
	// <nil>
}

func ExampleRecount() {
	r := rollup.Recount{
		Table: "readers", Keys: []string{"reader"}, Attribute: "books",
		Get: func(_ context.Context, _ string, key sluice.Item) (sluice.Item, error) { // store.Get
			return key.With(item.Number("books", "7")), nil
		},
		Children: func(ctx context.Context, reader sluice.Item) iter.Seq2[sluice.Item, error] {
			query := func(context.Context, dynamo.Query) (dynamo.Page, error) { // store.Query
				return dynamo.Page{Items: []sluice.Item{item.Of(item.String("isbn", "0-13-110362-8"))}}, nil
			}
			v, _ := reader.Lookup("reader")
			return dynamo.All(ctx, query, dynamo.Query{Table: "loans", Partition: item.String("reader", v.Str())})
		},
		DryRun: true,
		Settle: time.Millisecond, // longer than records take to have their effect
		Found: func(c rollup.Correction) {
			fmt.Printf("%s of %s is %d, want %d\n", c.Attribute, c.Key.Raw(), c.Old, c.New)
		},
	}
	readers := func(yield func(sluice.Item, error) bool) { yield(item.Of(item.String("reader", "al")), nil) }
	done, err := r.Run(context.Background(), readers)
	fmt.Println(done.Parents, done.Corrected, err)
	// Output:
	// books of {"reader":{"S":"al"}} is 7, want 1
	// 1 1 <nil>
}
