package dynamo

import (
	"context"
	"iter"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// Query reads the items of one partition, in the order of their sort keys.
type Query struct {
	Table     string
	Index     string         // "" is the table, read consistently; an index lags behind it
	Partition item.Attribute // the partition key of table or index
	Sort      Sort           // limits the sort key; the zero Sort does not

	Descending bool
	Limit      int         // items of a page at most; 0 is the service's limit, 1 MB
	Attributes []string    // top-level attributes to return; none is all that the table or index has
	Whole      bool        // refuses a global index that lacks attributes; then Attributes must be empty
	After      sluice.Item // Page.Next of the previous page; absent at the beginning
}

// Sort limits a query by the sort key. [Prefix], [Before], [After] and [Between]
// make one.
type Sort struct {
	Op     string // "begins_with", "<", "<=", "=", ">=", ">" or "BETWEEN"; "" is no limit
	Key    item.Attribute
	Second item.Attribute // of BETWEEN
}

// Prefix limits a query to sort keys that begin with text.
func Prefix(name, text string) Sort { return Sort{Op: "begins_with", Key: item.String(name, text)} }

// Before limits a query to sort keys less than key.
func Before(key item.Attribute) Sort { return Sort{Op: "<", Key: key} }

// After limits a query to sort keys greater than key.
func After(key item.Attribute) Sort { return Sort{Op: ">", Key: key} }

// Between limits a query to sort keys from first to last, both included. Both have
// the same name.
func Between(first, last item.Attribute) Sort { return Sort{Op: "BETWEEN", Key: first, Second: last} }

// Page is one response to a Query. It may be empty without being the last.
type Page struct {
	Items []sluice.Item
	Next  sluice.Item // start of the next page; absent on the last
}

// All reads all pages of a query in turn. An error ends it.
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
