package config

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/router"
)

func (b *builder) count(rt *Route, field string) (*built, error) {
	o := rt.Count
	if err := rt.only(field, "INSERT", "MODIFY", "REMOVE"); err != nil {
		return nil, b.c.wrong(field, err)
	}
	var used []string
	if o.Markers != "" {
		used = append(used, o.Markers)
	}
	for _, n := range o.Numbers {
		if n.Table != "" {
			used = append(used, n.Table)
		}
	}
	store := b.sinks.use(field, used...)
	c := rollup.Config{Name: o.ID, Markers: o.Markers, Life: time.Duration(o.Life), Once: store.Once, Get: store.Get, Now: b.s.Fakes.Now, Metrics: b.s.Metrics}
	var whens []itemWhen
	ofNumber := make([]itemWhen, len(o.Numbers))
	for i, n := range o.Numbers {
		count := rollup.Count{Table: n.Table, Attribute: n.Attribute, Of: n.Of, Create: n.Create}
		if len(n.Key) > 0 {
			count.Key = rollup.From(n.Key)
		}
		if n.When != "" {
			when, err := b.c.itemWhen(fmt.Sprintf("%s.numbers[%d].when", field, i), n.When)
			if err != nil {
				return nil, err
			}
			whens = append(whens, when)
			ofNumber[i] = when
			count.When = func(child sluice.Item) bool {
				ok, err := when(child)
				return ok && err == nil // decided, or a recount's children, have seen the error before
			}
		}
		c.Counts = append(c.Counts, count)
	}
	if o.DeleteOrphans != "" {
		if !rt.takes("INSERT") {
			return nil, b.c.wrong(field+".deleteOrphans", fmt.Errorf("orphans are deleted as they are inserted, and on (%s) has no INSERT: want it, or no deleteOrphans", strings.Join(rt.On, ", ")))
		}
		orphans, err := o.orphans(store)
		if err != nil {
			return nil, b.c.wrong(field+".deleteOrphans", err)
		}
		c.Orphans = orphans
	}
	r, err := rollup.New(c)
	if err != nil {
		return nil, b.c.wrong(field, err)
	}
	made := &built{handle: decided(whens, r.Handle), late: true}
	if rt.takes("INSERT") || rt.takes("MODIFY") {
		made.options = append(made.options, router.NeedsNew())
	}
	if rt.takes("REMOVE") || rt.takes("MODIFY") {
		made.options = append(made.options, router.NeedsOld())
	}
	made.Recounts, made.CheckRecounts = b.recounts(rt, field, c.Counts, ofNumber, store)
	made.Explain = func(ctx context.Context, rec *sluice.Record) ([]Effect, error) {
		if err := decide(whens, rec); err != nil {
			return nil, err
		}
		unit, err := r.Plan(rec)
		if err != nil {
			return nil, err
		}
		var effects []Effect
		for _, add := range unit.Adds {
			for _, name := range slices.Sorted(maps.Keys(add.By)) {
				effects = append(effects, Effect{
					Does: fmt.Sprintf("add %d to %s of an item of table %s", add.By[name], name, add.Table),
					Sink: b.sinks.storeName, Target: add.Table, Key: string(add.Key.AppendJSON(nil)),
				})
			}
		}
		if o.DeleteOrphans == "" || rec.EventName != sluice.Insert {
			return effects, nil
		}
		deleted, err := b.orphaned(ctx, rec, o.DeleteOrphans, c.Counts, store)
		return append(effects, deleted...), err
	}
	return made, nil
}

// orphaned is the deletion of the item that rec has inserted, if its parent in a
// table is not there.
func (b *builder) orphaned(ctx context.Context, rec *sluice.Record, table string, counts []rollup.Count, store Tables) ([]Effect, error) {
	i := slices.IndexFunc(counts, func(n rollup.Count) bool { return n.Table == table })
	parent := counts[i].Key(rec.New)
	if !parent.Exists() {
		return nil, fmt.Errorf("it has not all of the attributes that a key of table %s is made of", table)
	}
	it, err := store.Get(ctx, table, parent)
	if err != nil {
		return nil, fmt.Errorf("reading its parent of table %s: %w", table, err)
	}
	if it.Exists() {
		return nil, nil
	}
	return []Effect{{
		Does: fmt.Sprintf("delete it, since table %s has no %s", table, parent.AppendJSON(nil)),
		Sink: b.sinks.storeName, Target: rec.Table, Key: string(rec.Keys.AppendJSON(nil)),
	}}, nil
}

type itemWhen = func(sluice.Item) (bool, error)

// decided fails a record for good of which an expression cannot tell whether it
// counts.
func decided(whens []itemWhen, next sluice.Handler) sluice.Handler {
	if len(whens) == 0 {
		return next
	}
	return func(ctx context.Context, rec *sluice.Record) error {
		if err := decide(whens, rec); err != nil {
			return sluice.Permanent(err)
		}
		return next(ctx, rec)
	}
}

func decide(whens []itemWhen, rec *sluice.Record) error {
	for _, image := range []sluice.Item{rec.Old, rec.New} {
		if !image.Exists() {
			continue
		}
		for _, when := range whens {
			if _, err := when(image); err != nil {
				return err
			}
		}
	}
	return nil
}

// orphans are deleted while their parent, in a table of the numbers, is not there.
func (c *Count) orphans(store Tables) (*rollup.Orphans, error) {
	i := slices.IndexFunc(c.Numbers, func(n Counter) bool { return n.Table == c.DeleteOrphans })
	if i < 0 {
		return nil, fmt.Errorf("%q is no table of numbers", c.DeleteOrphans)
	}
	for j, n := range c.Numbers {
		if n.Table == c.DeleteOrphans && !maps.Equal(n.Key, c.Numbers[i].Key) {
			return nil, fmt.Errorf("numbers[%d] and numbers[%d] have different parents in table %s: which of them a child is an orphan without is not said; want one key for both, or a route of its own for one", i, j, c.DeleteOrphans)
		}
	}
	o := &rollup.Orphans{Table: c.DeleteOrphans, Transact: store.Transact}
	for _, child := range slices.Sorted(maps.Values(c.Numbers[i].Key)) {
		if strings.Contains(child, ".") {
			return nil, fmt.Errorf("the key of the parents in table %s is taken from %q, within a map: want an attribute, to delete a child only while it is what it was", c.DeleteOrphans, child)
		}
		o.While = append(o.While, child)
	}
	return o, nil
}

// only says which pattern is for another event than those.
func (rt *Route) only(field string, events ...string) error {
	for _, event := range []string{"INSERT", "MODIFY", "REMOVE", "SNAPSHOT", "MESSAGE"} {
		if rt.takes(event) && !slices.Contains(events, event) {
			_, kind, _ := strings.Cut(field, ".")
			return fmt.Errorf("%s is not for %s, which on (%s) has: it is for %s", kind, event, strings.Join(rt.On, ", "), strings.Join(events, ", "))
		}
	}
	return nil
}
