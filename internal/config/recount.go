package config

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
)

// recounts returns a recount for each number of a route, and a check that reports
// numbers without a way to their children. whens are the numbers' conditions. The way
// to children depends on the keys of tables, so a recount asks for these when it
// begins.
func (b *builder) recounts(rt *Route, field string, counts []rollup.Count, whens []itemWhen, store Tables) ([]rollup.Recount, func(context.Context, bool) error) {
	r := &recounter{route: rt.Name, field: field, numbers: rt.Count.Numbers, whens: whens, store: store, types: rt.Types(), resolver: b.resolver}
	r.wrong = func(at, format string, args ...any) error {
		return b.c.wrong(field+at, fmt.Errorf("route %s: %w", rt.Name, fmt.Errorf(format, args...)))
	}
	if r.table = b.c.tableOf(rt, rt.Count.Table); r.table == "" {
		r.noTable = r.wrong(".table", "a recount does not know the children's table: want its name, since source has several, and entityType does not tell which has the types of the route")
	}
	var all []rollup.Recount
	for i, n := range rt.Count.Numbers {
		all = append(all, rollup.Recount{
			Table: n.Table, Keys: slices.Sorted(maps.Keys(n.Key)), Attribute: n.Attribute, Of: n.Of, When: counts[i].When,
			Children: func(ctx context.Context, parent sluice.Item) iter.Seq2[sluice.Item, error] {
				return r.children(ctx, i, parent)
			},
			Get: store.Get, Transact: store.Transact, Name: rt.Count.ID, Markers: rt.Count.Markers, Now: b.s.Fakes.Now,
		})
	}
	return all, r.check
}

// recounter finds the children of parents.
type recounter struct {
	route, field string // the route's name, and the path of its count
	numbers      []Counter
	whens        []itemWhen // of the numbers
	store        Tables
	table        string // table of the children
	noTable      error
	wrong        func(at, format string, args ...any) error // makes an error with a place in the file
	types        []string
	resolver     router.Resolver
}

// check reports numbers without a way to their children. It ignores an unreachable
// table.
func (r *recounter) check(ctx context.Context, ask bool) error {
	if r.noTable != nil {
		return r.noTable
	}
	var errs []error
	for i, n := range r.numbers {
		if n.Index == "" && !ask {
			continue
		}
		if _, err := r.way(ctx, i); errors.As(err, new(*Error)) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// children reads the children of a parent of the number at i. It ends with an error at a
// child for which the condition fails. The stream's route parks the record of that child. A
// recount without it would lower a right counter.
func (r *recounter) children(ctx context.Context, i int, parent sluice.Item) iter.Seq2[sluice.Item, error] {
	return func(yield func(sluice.Item, error) bool) {
		way, err := r.way(ctx, i)
		if err != nil {
			yield(sluice.Item{}, err)
			return
		}
		for child, err := range r.candidates(ctx, way, parent) {
			if err == nil {
				var ours bool
				if ours, err = r.counts(ctx, r.numbers[i], parent, child); err == nil && !ours {
					continue
				}
			}
			if err == nil && r.whens[i] != nil {
				if _, failed := r.whens[i](child); failed != nil {
					err = r.untold(ctx, i, child, failed)
				}
			}
			if !yield(child, err) || err != nil {
				return
			}
		}
	}
}

func (r *recounter) untold(ctx context.Context, i int, child sluice.Item, failed error) error {
	names, err := r.store.KeyNames(ctx, r.table)
	if err != nil {
		return err
	}
	return fmt.Errorf("route %q, %s.numbers[%d].when: whether the item %s of table %s counts cannot be told, so that nothing is set: %w; mend the condition or the item, and recount again", r.route, r.field, i, child.Only(names...).Raw(), r.table, failed)
}

// counts reports whether a child belongs to this parent and to the route's types.
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

// way is a query for children: the partition of a table or index whose key is the
// parent's attribute from. With above, the query runs for each parent that above finds.
type way struct {
	query           dynamo.Query
	partition, from string
	above           *way
}

// way returns a query by an index, by the table's own key, or through the parents of
// another number. Without any of them it returns an [*Error] with the missing setting.
func (r *recounter) way(ctx context.Context, i int) (way, error) {
	n, at := r.numbers[i], fmt.Sprintf(".numbers[%d]", i)
	if r.noTable != nil {
		return way{}, r.noTable
	}
	taken := strings.Join(slices.Sorted(maps.Values(n.Key)), ", ")
	if n.Index != "" {
		from := parentAttribute(n, n.Partition)
		if from == "" {
			return way{}, r.wrong(at+".partition", "a recount does not find the children of an item of table %s by the index %s: its partition key %s is none of %s, which the parent's key is taken from", n.Table, n.Index, n.Partition, taken)
		}
		return way{query: dynamo.Query{Table: r.table, Index: n.Index, Whole: true}, partition: n.Partition, from: from}, nil
	}
	names, err := r.store.KeyNames(ctx, r.table)
	if err != nil {
		return way{}, err
	}
	own := way{query: dynamo.Query{Table: r.table}, partition: names[0]}
	if own.from = parentAttribute(n, own.partition); own.from != "" {
		return own, nil
	}
	for _, m := range r.numbers {
		own.from = parentAttribute(m, own.partition)
		if m.Table == n.Table || own.from == "" {
			continue
		}
		names, err := r.store.KeyNames(ctx, m.Table)
		if err != nil {
			return way{}, err
		}
		if from := parentAttribute(n, m.Key[names[0]]); from != "" {
			own.above = &way{query: dynamo.Query{Table: m.Table}, partition: names[0], from: from}
			return own, nil
		}
	}
	return way{}, r.wrong(at+".index", "a recount does not find the children of an item of table %s: the partition key of their table %s, %q, is none of %s, which the parent's key is taken from; want a global secondary index of %[2]s that has one of these as its partition key, and its name in partition", n.Table, r.table, own.partition, taken)
}

// candidates reads the items that may be a parent's children.
func (r *recounter) candidates(ctx context.Context, w way, parent sluice.Item) iter.Seq2[sluice.Item, error] {
	if w.above == nil {
		return r.query(ctx, w, parent)
	}
	return func(yield func(sluice.Item, error) bool) {
		for above, err := range r.query(ctx, *w.above, parent) {
			if err != nil {
				yield(above, err)
				return
			}
			for child, err := range r.query(ctx, w, above) {
				if !yield(child, err) {
					return
				}
			}
		}
	}
}

// query reads the partition whose key is the parent's attribute w.from.
func (r *recounter) query(ctx context.Context, w way, parent sluice.Item) iter.Seq2[sluice.Item, error] {
	v, ok := parent.Lookup(w.from)
	if !ok {
		return func(yield func(sluice.Item, error) bool) {
			yield(sluice.Item{}, fmt.Errorf("the parent %s has no attribute %q", parent.Raw(), w.from))
		}
	}
	q := w.query
	switch v.Kind() {
	case item.N:
		q.Partition = item.Number(w.partition, v.Str())
	case item.B:
		q.Partition = item.Binary(w.partition, v.Bytes())
	default:
		q.Partition = item.String(w.partition, v.Str())
	}
	return dynamo.All(ctx, r.store.Query, q)
}

// parentAttribute returns the parent's attribute that equals this attribute of the
// child; "" if none does.
func parentAttribute(n Counter, child string) string {
	for of, from := range n.Key {
		if from == child && child != "" {
			return of
		}
	}
	return ""
}
