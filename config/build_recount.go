package config

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/dynamo"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
)

// recounts are those of a route's numbers, whose conditions, where there are some,
// are whens. How children are found depends on the keys of tables, which are asked
// for when a recount begins.
func (b *builder) recounts(rt *Route, field string, counts []rollup.Count, whens []itemWhen, store Tables) []rollup.Recount {
	r := &recounter{numbers: rt.Count.Numbers, store: store, types: rt.types(), resolver: b.resolver}
	r.table, r.noTable = b.tableOf(rt, rt.Count.Table)
	var all []rollup.Recount
	for i, n := range rt.Count.Numbers {
		all = append(all, rollup.Recount{
			Table: n.Table, Keys: slices.Sorted(maps.Keys(n.Key)), Attribute: n.Attribute, Of: n.Of, When: counts[i].When,
			Children: func(ctx context.Context, parent sluice.Item) iter.Seq2[sluice.Item, error] {
				of := fmt.Sprintf("route %q, %s.numbers[%d].when", rt.name(), field, i)
				return r.told(ctx, of, whens[i], r.children(ctx, n, parent))
			},
			Get: store.Get, Write: store.Write,
		})
	}
	return all
}

// recounter finds the children of parents.
type recounter struct {
	numbers  []Counter
	store    Tables
	table    string // of the children
	noTable  error
	types    []string
	resolver router.Resolver
}

// children reads the children of a parent: by an index, by the table's own key,
// or by way of the parents of another number, each of which is looked through.
func (r *recounter) children(ctx context.Context, n Counter, parent sluice.Item) iter.Seq2[sluice.Item, error] {
	return func(yield func(sluice.Item, error) bool) {
		for child, err := range r.candidates(ctx, n, parent) {
			if err == nil {
				var ours bool
				if ours, err = r.counts(ctx, n, parent, child); err == nil && !ours {
					continue
				}
			}
			if !yield(child, err) || err != nil {
				return
			}
		}
	}
}

// told ends at a child of which the condition cannot tell whether it counts. The
// stream's route parks the record of such a child; a recount that took it for one
// that does not count would set a counter that is right to less.
func (r *recounter) told(ctx context.Context, of string, when itemWhen, children iter.Seq2[sluice.Item, error]) iter.Seq2[sluice.Item, error] {
	if when == nil {
		return children
	}
	return func(yield func(sluice.Item, error) bool) {
		for child, err := range children {
			if err == nil {
				if _, failed := when(child); failed != nil {
					err = r.untold(ctx, of, child, failed)
				}
			}
			if !yield(child, err) || err != nil {
				return
			}
		}
	}
}

func (r *recounter) untold(ctx context.Context, of string, child sluice.Item, failed error) error {
	names, err := r.store.KeyNames(ctx, r.table)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: whether the item %s of table %s counts cannot be told, so that nothing is set: %w; mend the condition or the item, and recount again", of, child.Only(names...).Raw(), r.table, failed)
}

// counts reports whether a child is of this parent, and of the route's types.
func (r *recounter) counts(ctx context.Context, n Counter, parent, child sluice.Item) (bool, error) {
	for of, from := range n.Key {
		want, _ := parent.Lookup(of)
		if v, ok := child.Lookup(from); !ok || !v.Equal(want) {
			return false, nil
		}
	}
	if slices.Contains(r.types, "*") {
		return true, nil
	}
	names, err := r.store.KeyNames(ctx, r.table)
	if err != nil {
		return false, err
	}
	typ, err := r.resolver.Type(&sluice.Record{EventName: sluice.Insert, Table: r.table, Keys: child.Only(names...), New: child})
	return err == nil && slices.Contains(r.types, typ), err
}

func (r *recounter) candidates(ctx context.Context, n Counter, parent sluice.Item) iter.Seq2[sluice.Item, error] {
	if r.noTable != nil {
		return failing(r.noTable)
	}
	if n.Index != "" {
		from := parentAttribute(n, n.Partition)
		if from == "" {
			return failing(fmt.Errorf("the partition %q of index %s is not among what the key of a parent in table %s is taken from", n.Partition, n.Index, n.Table))
		}
		return r.query(ctx, dynamo.Query{Table: r.table, Index: n.Index}, n.Partition, parent, from)
	}
	names, err := r.store.KeyNames(ctx, r.table)
	if err != nil {
		return failing(err)
	}
	partition := names[0]
	if from := parentAttribute(n, partition); from != "" {
		return r.query(ctx, dynamo.Query{Table: r.table}, partition, parent, from)
	}
	for _, m := range r.numbers {
		from := parentAttribute(m, partition)
		if m.Table == n.Table || from == "" {
			continue
		}
		names, err := r.store.KeyNames(ctx, m.Table)
		if err != nil {
			return failing(err)
		}
		if above := parentAttribute(n, m.Key[names[0]]); above != "" {
			return r.through(ctx, r.query(ctx, dynamo.Query{Table: m.Table}, names[0], parent, above), partition, from)
		}
	}
	return failing(fmt.Errorf("the children in table %s, whose partition key is %q, are not found by the key of a parent in table %s: name an index and its partition in that number", r.table, partition, n.Table))
}

// through reads the children of each parent.
func (r *recounter) through(ctx context.Context, parents iter.Seq2[sluice.Item, error], partition, from string) iter.Seq2[sluice.Item, error] {
	return func(yield func(sluice.Item, error) bool) {
		for parent, err := range parents {
			if err != nil {
				yield(parent, err)
				return
			}
			for child, err := range r.query(ctx, dynamo.Query{Table: r.table}, partition, parent, from) {
				if !yield(child, err) {
					return
				}
			}
		}
	}
}

// query reads the partition whose key is the parent's attribute from.
func (r *recounter) query(ctx context.Context, q dynamo.Query, partition string, parent sluice.Item, from string) iter.Seq2[sluice.Item, error] {
	v, ok := parent.Lookup(from)
	if !ok {
		return failing(fmt.Errorf("the parent %s has no attribute %q", parent.Raw(), from))
	}
	switch v.Kind() {
	case item.N:
		q.Partition = item.Number(partition, v.Str())
	case item.B:
		q.Partition = item.Binary(partition, v.Bytes())
	default:
		q.Partition = item.String(partition, v.Str())
	}
	return dynamo.All(ctx, r.store.Query, q)
}

// parentAttribute is the parent's attribute that is taken from the child's; ""
// when there is none.
func parentAttribute(n Counter, child string) string {
	for of, from := range n.Key {
		if from == child && child != "" {
			return of
		}
	}
	return ""
}

func failing(err error) iter.Seq2[sluice.Item, error] {
	return func(yield func(sluice.Item, error) bool) { yield(sluice.Item{}, err) }
}

// tableOf is the table whose records a route takes, as far as the file tells.
func (b *builder) tableOf(rt *Route, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	tables := map[string]bool{}
	types := rt.types()
	for table, typ := range b.c.EntityType.Tables {
		if slices.Contains(types, typ) {
			tables[table] = true
		}
	}
	if len(tables) == 0 && len(b.c.Source.Tables) == 1 {
		return tableName(b.c.Source.Tables[0]), nil
	}
	if len(tables) == 1 {
		for table := range tables {
			return table, nil
		}
	}
	return "", errors.New("it names no table, and neither does entityType have one table for the types of the route, nor source only one")
}
