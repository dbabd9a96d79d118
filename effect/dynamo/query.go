package dynamo

import (
	"context"
	"iter"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// Query asks for the items of one partition, in the order of their sort keys.
type Query struct {
	Table     string
	Index     string         // "" is the table itself, which is read consistently; an index lags behind it
	Partition item.Attribute // the partition key of table or index
	Sort      Sort           // narrows the sort key; the zero Sort does not

	Descending bool
	Limit      int         // items of one page at most; 0 is what the service puts into one, 1 MB
	Attributes []string    // what is wanted of each item, top-level; none is all that table or index has
	Whole      bool        // refuse a global index that has not all of an item; then Attributes are none
	After      sluice.Item // Page.Next of the page before; absent is the beginning
}

// Sort narrows a query by the sort key. [Prefix], [Before], [After] and
// [Between] make them.
type Sort struct {
	Op     string // "begins_with", "<", "<=", "=", ">=", ">" or "BETWEEN"; "" is no narrowing
	Key    item.Attribute
	Second item.Attribute // of BETWEEN
}

// Prefix narrows to sort keys that begin with a text.
func Prefix(name, text string) Sort { return Sort{Op: "begins_with", Key: item.String(name, text)} }

// Before narrows to sort keys less than key.
func Before(key item.Attribute) Sort { return Sort{Op: "<", Key: key} }

// After narrows to sort keys greater than key.
func After(key item.Attribute) Sort { return Sort{Op: ">", Key: key} }

// Between narrows to sort keys from first to last, both included. Their names
// are the same.
func Between(first, last item.Attribute) Sort { return Sort{Op: "BETWEEN", Key: first, Second: last} }

// Page is one answer to a Query. It may be empty and not the last.
type Page struct {
	Items []sluice.Item
	Next  sluice.Item // where the next page begins; absent after the last one
}

// All reads all pages of a query, one after another. An error ends it.
func All(ctx context.Context, query func(context.Context, Query) (Page, error), q Query) iter.Seq2[sluice.Item, error] {
	return func(yield func(sluice.Item, error) bool) {
		for {
			page, err := query(ctx, q)
			if err != nil {
				yield(sluice.Item{}, err)
				return
			}
			for _, it := range page.Items {
				if !yield(it, nil) {
					return
				}
			}
			if q.After = page.Next; !q.After.Exists() {
				return
			}
		}
	}
}
