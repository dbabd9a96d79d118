package projection_test

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// Searches find orders by their contents. A redelivery changes nothing.
func Example() {
	index := streamtest.NewIndex() // sinks/opensearch in production
	p, err := projection.New(index.Write, projection.Options{
		Index:   "orders",
		ID:      "{customer}|{order}",
		Version: projection.ByAttribute("rev"),
		Exclude: []string{"card"},
		Rename:  []projection.Rename{{From: "ts", To: "created"}},
		Flatten: []projection.Flatten{{Path: "address", Prefix: "to_"}},
		Last:    []projection.Field{projection.Constant("kind", "order")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := router.New(router.TypeFrom(router.Table(nil)))
	r.Handle("orders#*", p.Handle, router.NeedsBoth(), router.Redrive())

	order := func(rev string, tags string) string {
		return `{"customer":{"S":"c-1"},"order":{"N":"7"},"rev":{"N":"` + rev + `"},"tags":{"SS":` + tags + `},` +
			`"card":{"S":"4111"},"ts":{"S":"2024-05-01"},"address":{"M":{"city":{"S":"Bern"}}}}`
	}
	keys := streamtest.WithKeys("customer", "order")
	made := streamtest.Insert("orders", order("1", `["new"]`), keys)
	changed := streamtest.Modify("orders", order("1", `["new"]`), order("2", `["paid","gift"]`), keys)
	streamtest.Run(context.Background(), r, made, changed, made)

	for _, doc := range index.Docs("orders") {
		fmt.Println(doc.ID, doc.Version)
		fmt.Println(string(doc.Source))
	}
	fmt.Println(len(index.Refused()), "refused")
	// Output:
	// c-1|7 2
	// {"customer":"c-1","order":7,"rev":2,"tags":["gift","paid"],"created":"2024-05-01","to_city":"Bern","kind":"order"}
	// 1 refused
}

// A version for a counter that restarts with each item: the creation time goes first.
func ExampleByFunc() {
	version := projection.ByFunc(func(it sluice.Item) (int64, error) {
		created, _ := it.Lookup("created_at") // in ms
		counter, _ := it.Lookup("version")
		ms, ok1 := created.Int64()
		n, ok2 := counter.Int64()
		if !ok1 || !ok2 || n >= 1<<20 {
			return 0, fmt.Errorf("created_at is %q and version %q: they make no version", created.Str(), counter.Str())
		}
		return ms<<20 | n, nil
	})
	p, err := projection.New(nil, projection.Options{Index: "tgw", ID: "{owner}|{id}", Version: version})
	if err != nil {
		fmt.Println(err)
		return
	}
	gone := item.Of(item.String("owner", "a"), item.String("id", "1"), item.Number("created_at", "1704164645000"), item.Number("version", "2"))
	ops, err := p.Project(&sluice.Record{EventName: sluice.Remove, Old: gone})
	fmt.Println(ops[0].Action, ops[0].ID, ops[0].Version, err)
	// Output: delete a|1 1786946146795520003 <nil>
}

// A field in the user's own form.
func ExampleComputed() {
	name := projection.Computed("name", func(dst []byte, it sluice.Item) ([]byte, error) {
		first, _ := it.Lookup("first")
		last, _ := it.Lookup("last")
		return item.AppendString(dst, last.Str()+", "+first.Str()), nil
	})
	p, err := projection.New(nil, projection.Options{
		Index: "people", ID: "{pk}", Version: projection.Unversioned(), Include: []string{"pk"}, Last: []projection.Field{name},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ada := item.Of(item.String("pk", "1"), item.String("first", "Ada"), item.String("last", "Lovelace"))
	var ops []document.Op
	ops, err = p.Project(&sluice.Record{EventName: sluice.Insert, New: ada})
	fmt.Println(string(ops[0].Body), err)
	// Output: {"pk":"1","name":"Lovelace, Ada"} <nil>
}
