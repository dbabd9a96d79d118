package batch_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
)

// A sink of one's own: the service takes up to 25 documents in one request and
// answers for each of them.
func Example() {
	store := func(_ context.Context, docs []string) []error {
		fmt.Printf("one request for %d documents\n", len(docs))
		errs := make([]error, len(docs))
		for i, doc := range docs {
			if doc == "" {
				errs[i] = sluice.Permanent(fmt.Errorf("document %d is empty", i))
			}
		}
		return errs
	}
	docs := batch.New(store, func(doc string) int { return len(doc) }, batch.Options{
		MaxItems: 25,
		MaxBytes: 1 << 20,
	})

	// What a handler does; concurrent handlers share requests.
	if err := docs.Do(context.Background(), `{"name":"Zavier"}`); err != nil {
		log.Fatal(err)
	}
	errs := docs.DoAll(context.Background(), []string{`{"name":"Ada"}`, ""})
	fmt.Println(errs[0], "|", errs[1])
	// Output:
	// one request for 1 documents
	// one request for 2 documents
	// <nil> | document 1 is empty
}
