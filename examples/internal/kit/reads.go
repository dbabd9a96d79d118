package kit

import (
	"context"
	"fmt"
	"iter"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
)

// Reader reads tables, such as sinks/dynamodb.Store.
type Reader interface {
	Get(ctx context.Context, table string, key sluice.Item) (sluice.Item, error)
	Query(ctx context.Context, q dynamo.Query) (dynamo.Page, error)
}

// One reads an item; found is false when it does not exist.
func One[T any](ctx context.Context, r Reader, table string, key sluice.Item) (v T, found bool, err error) {
	it, err := r.Get(ctx, table, key)
	if err != nil || !it.Exists() {
		return v, false, err
	}
	v, err = Decode[T](table, it)
	return v, err == nil, err
}

// Rows reads what a query finds, and ends with the first error.
func Rows[T any](ctx context.Context, r Reader, q dynamo.Query) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for it, err := range dynamo.All(ctx, r.Query, q) {
			var v T
			if err == nil {
				v, err = Decode[T](q.Table, it)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// All is Rows as a slice.
func All[T any](ctx context.Context, r Reader, q dynamo.Query) (all []T, err error) {
	for v, err := range Rows[T](ctx, r, q) {
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// Page reads up to limit items of a query; 0 is as many as the service puts into a
// page. last is the last item if others follow.
func Page[T any](ctx context.Context, r Reader, q dynamo.Query, limit int) (all []T, last sluice.Item, err error) {
	if limit > 0 {
		q.Limit = limit + 1 // DynamoDB ends a full page without knowing whether another follows
	}
	page, err := r.Query(ctx, q)
	if err != nil {
		return nil, last, err
	}
	if limit > 0 && len(page.Items) > limit {
		page.Items = page.Items[:limit]
		page.Next = page.Items[limit-1]
	}
	all, err = DecodeAll[T](q.Table, page.Items)
	return all, page.Next, err
}

// DecodeAll decodes items of a table.
func DecodeAll[T any](table string, items []sluice.Item) (all []T, err error) {
	for _, it := range items {
		v, err := Decode[T](table, it)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// Decode decodes an item of a table.
func Decode[T any](table string, it sluice.Item) (v T, err error) {
	if err = it.Decode(&v); err != nil {
		err = fmt.Errorf("an item of table %s: %w", table, err)
	}
	return v, err
}
