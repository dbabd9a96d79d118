package manhunt

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// Page says which part of a query's answer is wanted.
type Page struct {
	Limit  int    // of rows, up to 1,000 (default 100)
	Cursor string // what the page before returned as next; "" is the first page
}

// ErrCursor is the error of a cursor of another query, or of an invalid one.
var ErrCursor = errors.New("cursor: it is none of this query; begin with the first page")

// page reads rows of one type, and where the next page begins: "" after the last.
// Rows that are added or deleted meanwhile do not repeat or hide others.
func page[T any](ctx context.Context, t *Table, entityType string, q dynamo.Query, p Page) (rows []T, next string, err error) {
	if p.Limit < 0 || p.Limit > 1000 {
		return nil, "", fmt.Errorf("limit is %d, want 1 to 1000", p.Limit)
	}
	p.Limit = cmp.Or(p.Limit, 100)
	q.Table, q.Limit = t.name, p.Limit+1 // one more says that there is another page
	if p.Cursor != "" {
		if q.After, err = cursorKey(q, p.Cursor); err != nil {
			return nil, "", err
		}
	}
	rows = []T{}
	var last sluice.Item
	for it, err := range dynamo.All(ctx, t.store.Query, q) {
		if err != nil {
			return nil, "", err
		}
		if attribute(it, "entityType") != entityType {
			continue
		}
		if len(rows) == p.Limit {
			return rows, cursor(q, last), nil
		}
		row, err := decode[T](it)
		if err != nil {
			return nil, "", err
		}
		rows, last = append(rows, row), it
	}
	return rows, "", nil
}

// keys are the key attributes of what a query reads, the partition's first.
func keys(q dynamo.Query) []string {
	if q.Index == "" {
		return []string{"PK", "SK"}
	}
	return []string{q.Index + "PK", q.Index + "SK", "PK", "SK"}
}

// cursor is the key of a row, in a form that stands in a URL as it is.
func cursor(q dynamo.Query, row sluice.Item) string {
	return base64.RawURLEncoding.EncodeToString(row.Only(keys(q)...).Raw())
}

// cursorKey reads a cursor, which anybody may have written: it stays in the
// partition that is asked for.
func cursorKey(q dynamo.Query, cursor string) (sluice.Item, error) {
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return sluice.Item{}, ErrCursor
	}
	key, err := item.Parse(data)
	if err != nil || key.Len() != len(keys(q)) {
		return sluice.Item{}, ErrCursor
	}
	for _, name := range keys(q) {
		if attribute(key, name) == "" {
			return sluice.Item{}, ErrCursor
		}
	}
	if partition := item.Of(q.Partition); attribute(partition, keys(q)[0]) != attribute(key, keys(q)[0]) {
		return sluice.Item{}, ErrCursor
	}
	return key, nil
}
