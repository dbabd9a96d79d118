package manhunt

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// Store reads and writes tables; sinks/dynamodb's Store is one.
type Store interface {
	Get(ctx context.Context, table string, key sluice.Item) (sluice.Item, error) // consistently
	Query(ctx context.Context, q dynamo.Query) (dynamo.Page, error)
	Write(ctx context.Context, op dynamo.Op) error
	DeleteGuarded(ctx context.Context, d dynamo.GuardedDelete)
}

// Table is the table of contacts and searches. It is safe for concurrent use.
type Table struct {
	store Store
	name  string
}

// NewTable returns the table of that name.
func NewTable(s Store, name string) *Table { return &Table{store: s, name: name} }

// Put writes an item.
func (t *Table) Put(ctx context.Context, it sluice.Item) error {
	if err := t.store.Write(ctx, dynamo.Put(t.name, it)); err != nil {
		return fmt.Errorf("writing %s %s: %w", attribute(it, "entityType"), Named(it), err)
	}
	return nil
}

// get reads one item, consistently. An item of another type is not found.
func (t *Table) get(ctx context.Context, pk, sk, entityType string) (sluice.Item, error) {
	it, err := t.store.Get(ctx, t.name, key(pk, sk))
	if err != nil {
		return sluice.Item{}, fmt.Errorf("reading %s %s: %w", entityType, Named(key(pk, sk)), err)
	}
	if attribute(it, "entityType") != entityType {
		return sluice.Item{}, nil
	}
	return it, nil
}

// partition reads a partition of the table, consistently.
func (t *Table) partition(ctx context.Context, pk string) ([]sluice.Item, error) {
	return t.query(ctx, dynamo.Query{Partition: item.String("PK", pk)})
}

// query reads all pages.
func (t *Table) query(ctx context.Context, q dynamo.Query) ([]sluice.Item, error) {
	q.Table = t.name
	var items []sluice.Item
	for it, err := range dynamo.All(ctx, t.store.Query, q) {
		if err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	return items, nil
}

// index asks for the items of an index's partition, the oldest first.
func index(name, partition string) dynamo.Query {
	return dynamo.Query{Index: name, Partition: item.String(name+"PK", partition)}
}

// SearchKey is the key of a search.
func SearchKey(id string) sluice.Item { return key(id, "search") }

func key(pk, sk string) sluice.Item {
	return item.Of(item.String("PK", pk), item.String("SK", sk))
}

// Named names an item in logs, and in errors, which are logged: by the hash that the
// daemon has for the item's key, and not by the key.
func Named(it sluice.Item) string {
	return fmt.Sprintf("(key hash %016x)", it.Only("PK", "SK").Hash())
}

func attribute(it sluice.Item, name string) string {
	v, _ := it.Lookup(name)
	return v.Str()
}
