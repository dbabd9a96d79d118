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

// recounts are those of a route's numbers, whose conditions, where there are some,
// are whens, and what says which have no way to children. How children are found
// depends on the keys of tables, which are asked for when a recount begins.
func (b *builder) recounts(rt *Route, field string, counts []rollup.Count, whens []itemWhen, store Tables) ([]rollup.Recount, func(context.Context, bool) error) {
	r := &recounter{numbers: rt.Count.Numbers, store: store, types: rt.types(), resolver: b.resolver}
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
				of := fmt.Sprintf("route %q, %s.numbers[%d].when", rt.Name, field, i)
				return r.told(ctx, of, whens[i], r.children(ctx, i, parent))
			},
			Get: store.Get, Transact: store.Transact, Name: rt.Count.ID, Markers: rt.Count.Markers, Now: b.s.Fakes.Now,
		})
	}
	return all, r.check
}

// recounter finds the children of parents.
type recounter struct {
	numbers  []Counter
	store    Tables
	table    string // of the children
	noTable  error
	wrong    func(at, format string, args ...any) error // with a place in the file
	types    []string
	resolver router.Resolver
}

// check says which numbers have no way to children. A table that cannot be asked
// is no matter here.
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

// children reads the children of a parent of the number at i, in the way there is.
func (r *recounter) children(ctx context.Context, i int, parent sluice.Item) iter.Seq2[sluice.Item, error] {
	return func(yield func(sluice.Item, error) bool) {
		n := r.numbers[i]
		way, err := r.way(ctx, i)
		if err != nil {
			yield(sluice.Item{}, err)
			return
		}
		for child, err := range r.candidates(ctx, way, parent) {
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

// way is how children are found: by the partition of table or index whose key is
// the parent's attribute from; those of each of the parents that above finds, if it
// is set.
type way struct {
	query           dynamo.Query
	partition, from string
	above           *way
}

// way is by an index, by the table's own key, or through the parents of another
// number. What the file would have to say for there to be one is an [*Error].
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

// candidates reads what may be a parent's children.
func (r *recounter) candidates(ctx context.Context, w way, parent sluice.Item) iter.Seq2[sluice.Item, error] {
	if w.above == nil {
		return r.query(ctx, w.query, w.partition, parent, w.from)
	}
	return r.through(ctx, r.query(ctx, w.above.query, w.above.partition, parent, w.above.from), w)
}

// through reads the children of each parent.
func (r *recounter) through(ctx context.Context, parents iter.Seq2[sluice.Item, error], w way) iter.Seq2[sluice.Item, error] {
	return func(yield func(sluice.Item, error) bool) {
		for parent, err := range parents {
			if err != nil {
				yield(parent, err)
				return
			}
			for child, err := range r.query(ctx, w.query, w.partition, parent, w.from) {
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
