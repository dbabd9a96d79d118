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

// Count keeps numbers on parents. An INSERT adds, a REMOVE subtracts.
type Count struct {
	// Name of the count in its markers; never change it.
	ID string `yaml:"id" is:"required"`
	// Table of the records that were counted.
	Markers string `yaml:"markers" is:"required"`
	// Age up to which a record counts; longer than dead letters wait. Default 72h.
	Life Duration `yaml:"life" is:"min=25h" default:"72h"`
	// Table of the children, for a recount. Default: the only one of source, or that
	// of the entity type.
	Table string `yaml:"table"`
	// Numbers to keep.
	Numbers []Counter `yaml:"numbers" is:"required"`
	// Table of numbers. A child inserted without its parent there is deleted.
	// Default: it stays, uncounted.
	DeleteOrphans string `yaml:"deleteOrphans"`
}

// Counter is a number on a parent.
type Counter struct {
	// Table of the parents.
	Table string `yaml:"table" is:"required"`
	// Attribute of the number.
	Attribute string `yaml:"attribute" is:"required"`
	// Key of the parent: parent's attribute to child's, or a list.
	Key KeyFrom `yaml:"key" is:"required"`
	// Global secondary index, with all attributes, for a recount. Default: the
	// children's table.
	Index string `yaml:"index"`
	// Children's attribute that is the partition key of index.
	Partition string `yaml:"partition"`
	// Attribute to sum. Default: count children.
	Of string `yaml:"of"`
	// Expression over new (the child): which children count.
	When string `yaml:"when"`
	// Create a missing parent.
	Create bool `yaml:"create"`
}

func (o *Count) check(c *Config, path string, r *Route) {
	d := c.doc
	c.only(path, r, sluice.Insert, sluice.Modify, sluice.Remove)
	if c.readsItem(r) {
		d.add(parent(path)+".when", "it reads the item: new is nil in a REMOVE, old in an INSERT, and a REMOVE would not subtract an added item; want when in each of numbers, which says which items count")
	}
	if strings.Contains(o.ID, "#") {
		d.add(path+".id", "%s has a '#', which ends it in the ids of markers", d.show(path+".id", o.ID))
	}
	if _, there := d.at[path+".numbers"]; there && len(o.Numbers) == 0 {
		d.add(path+".numbers", "there is none")
	}
	var parents, shown []string
	for i, n := range o.Numbers {
		at := element(path+".numbers", i)
		parents = append(parents, n.Table)
		shown = append(shown, d.shown(at+".table", n.Table))
		if len(n.Key) > 2 {
			d.add(at+".key", "it has %d attributes; want the partition key, and the sort key if there is one", len(n.Key))
		}
		if j := slices.IndexFunc(o.Numbers[:i], func(m Counter) bool { return m.Table == n.Table && m.Create != n.Create }); j >= 0 {
			d.add(at+".create", "it is unlike that of numbers[%d], which is of the same table: one item cannot be added to in both ways", j)
		}
		if (n.Index == "") != (n.Partition == "") {
			d.add(at, "index and partition go together, and one of them is missing")
		}
	}
	if t := o.DeleteOrphans; t != "" && len(parents) > 0 && !slices.Contains(parents, t) {
		d.add(path+".deleteOrphans", "%s is not a table of numbers; %s", d.show(path+".deleteOrphans", t), d.meant(path+".deleteOrphans", t, shown))
	} else if t != "" && len(parents) > 0 {
		c.note(path+".deleteOrphans", o.wrongOrphans(r))
	}
	for i, other := range c.Routes {
		if other.Count != nil && other.Count != o && other.Count.ID == o.ID && other.Count.Markers == o.Markers && o.ID != "" && element("routes", i) < parent(path) {
			d.add(path+".id", "%s is that of %s.count, too: one would take what the other counted for its own", d.show(path+".id", o.ID), element("routes", i))
		}
	}
}

func (o *Count) build(b *builder, path string, r *Route) (*built, error) {
	used := []string{o.Markers}
	for _, n := range o.Numbers {
		used = append(used, n.Table)
	}
	store := b.sinks.use(path, used...)
	if err := b.sinks.together(path, used...); err != nil {
		return nil, err
	}
	if o.DeleteOrphans != "" { // the children are in a table of source
		if err := b.sinks.together(path+".deleteOrphans", append(slices.Clone(b.c.tables()), o.DeleteOrphans)...); err != nil {
			return nil, err
		}
	}
	c := rollup.Config{Name: o.ID, Markers: o.Markers, Life: time.Duration(o.Life), Once: store.Once, Get: store.Get, Now: b.s.Fakes.Now, Metrics: b.s.Metrics}
	whens := make([]itemWhen, len(o.Numbers)) // nil: the number has none
	for i, n := range o.Numbers {
		count := rollup.Count{Table: n.Table, Attribute: n.Attribute, Of: n.Of, Create: n.Create, Key: rollup.From(n.Key)}
		if n.When != "" {
			when, err := b.c.itemWhen(fmt.Sprintf("%s.numbers[%d].when", path, i), n.When)
			if err != nil {
				return nil, err
			}
			whens[i] = when
			count.When = func(child sluice.Item) bool {
				ok, err := when(child)
				return ok && err == nil // decided, or the recount, has reported the error
			}
		}
		c.Counts = append(c.Counts, count)
	}
	if o.DeleteOrphans != "" {
		c.Orphans = &rollup.Orphans{Table: o.DeleteOrphans, Transact: store.Transact, While: slices.Sorted(maps.Values(o.Numbers[o.parents()].Key))}
	}
	counts, err := rollup.New(c)
	if err != nil {
		return nil, err
	}
	made := &built{handle: decided(whens, counts.Handle), late: true}
	if r.takes(sluice.Insert) || r.takes(sluice.Modify) {
		made.options = append(made.options, router.NeedsNew())
	}
	if r.takes(sluice.Remove) || r.takes(sluice.Modify) {
		made.options = append(made.options, router.NeedsOld())
	}
	made.Recounts, made.Lacks = b.recounts(r, path, c.Counts, whens, store)
	made.Explain = func(ctx context.Context, rec *sluice.Record) ([]Effect, error) {
		if err := decide(whens, rec); err != nil {
			return nil, err
		}
		unit, err := counts.Plan(rec)
		if err != nil {
			return nil, err
		}
		var effects []Effect
		for _, add := range unit.Adds {
			for _, name := range slices.Sorted(maps.Keys(add.By)) {
				effects = append(effects, b.changed(fmt.Sprintf("add %d to %s of an item of table %s", add.By[name], name, add.Table), add.Table, add.Key))
			}
		}
		if o.DeleteOrphans == "" || rec.EventName != sluice.Insert {
			return effects, nil
		}
		deleted, err := b.orphaned(ctx, rec, o.DeleteOrphans, c.Counts[o.parents()].Key(rec.New), store)
		return append(effects, deleted...), err
	}
	return made, nil
}

// orphaned returns the deletion of the item that rec inserted, if its parent, which has
// this key in table, is missing.
func (b *builder) orphaned(ctx context.Context, rec *sluice.Record, table string, parent sluice.Item, store Tables) ([]Effect, error) {
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
	return []Effect{b.changed(fmt.Sprintf("delete it, since table %s has no %s", table, parent.AppendJSON(nil)), rec.Table, rec.Keys)}, nil
}

type itemWhen = func(sluice.Item) (bool, error)

// decided fails a record for good if an expression fails for its item.
func decided(whens []itemWhen, next sluice.Handler) sluice.Handler {
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
			if when == nil {
				continue
			}
			if _, err := when(image); err != nil {
				return err
			}
		}
	}
	return nil
}

// wrongOrphans returns an error if deleteOrphans does not fit the numbers.
func (o *Count) wrongOrphans(r *Route) error {
	if !r.takes(sluice.Insert) {
		return fmt.Errorf("orphans are deleted as they are inserted, and on (%s) has no INSERT: want it, or no deleteOrphans", strings.Join(r.On, ", "))
	}
	i := o.parents()
	for j, n := range o.Numbers {
		if n.Table == o.DeleteOrphans && !maps.Equal(n.Key, o.Numbers[i].Key) {
			return fmt.Errorf("numbers[%d] and numbers[%d] have different parents in table %s: which of them a child is an orphan without is not said; want one key for both, or a route of its own for one", i, j, o.DeleteOrphans)
		}
	}
	for _, child := range slices.Sorted(maps.Values(o.Numbers[i].Key)) {
		if strings.Contains(child, ".") {
			return fmt.Errorf("the key of the parents in table %s is taken from %q, within a map: want an attribute, to delete a child only while it is what it was", o.DeleteOrphans, child)
		}
	}
	return nil
}

// parents returns the index of the first number in the table that deleteOrphans names.
func (o *Count) parents() int {
	return slices.IndexFunc(o.Numbers, func(n Counter) bool { return n.Table == o.DeleteOrphans })
}
