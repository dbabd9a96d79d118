package rollup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/keyhash"
)

// Orphans has a child deleted that is inserted while its parent is not there. It
// counts on its other parents first, and the record of its deletion takes that
// off again: so what a child adds and what its end takes away is the same,
// whatever happens to its parents.
//
// Whether the parent is there is what the counting finds, in one transaction;
// only when that was done before, and its answer is lost, or when the child adds
// nothing to it, is the parent looked for. The child is deleted on condition that
// the parent is still not there. A parent that comes back in between lacks the
// count of the child, which stays: a Recount finds that.
type Orphans struct {
	// Table of the parents: that of one of Counts, without Create, whose Key says
	// which they are. A child that has none fails for good.
	Table string
	// While are the attributes of the child that Key is made of, beside those of
	// its own key: it is deleted only while they are what they were.
	While []string
	// Transact makes all writes or none; that of a sinks/dynamodb.Store does.
	Transact func(ctx context.Context, ops ...dynamo.Op) error
}

func (o *Orphans) validate(counts []Count) error {
	var errs []error
	i := slices.IndexFunc(counts, func(n Count) bool { return n.Table == o.Table })
	switch {
	case i < 0:
		errs = append(errs, fmt.Errorf("Orphans.Table is %q, want that of one of Counts", o.Table))
	case counts[i].Create:
		errs = append(errs, fmt.Errorf("Orphans.Table is %q, where a Count makes the parents that are not there", o.Table))
	}
	if o.Transact == nil {
		errs = append(errs, errors.New("Orphans.Transact is missing"))
	}
	return errors.Join(errs...)
}

// inserted is Handle for a child that was inserted, where orphans are deleted.
func (r *Rollup) inserted(ctx context.Context, rec *sluice.Record) error {
	o := r.c.Orphans
	i := slices.IndexFunc(r.c.Counts, func(n Count) bool { return n.Table == o.Table })
	parent := r.c.Counts[i].Key(rec.New)
	if rec.New.Exists() && !parent.Exists() {
		return sluice.Permanent(fmt.Errorf("rollup %s: child %s of table %s belongs to no parent: it has not all of the attributes that a key of table %s is made of", r.c.Name, keyhash.Item(rec.Keys), rec.Table, o.Table))
	}
	a, adds, err := r.apply(ctx, rec)
	if err != nil {
		return err
	}
	ofParent := func(add dynamo.Add) bool { return add.Table == o.Table && add.Key.Equal(parent) }
	switch {
	case slices.ContainsFunc(a.Dropped, ofParent):
	case !a.Before && slices.ContainsFunc(adds, ofParent):
		return nil // it was there
	default:
		it, err := r.c.Get(ctx, o.Table, parent)
		if err != nil {
			return fmt.Errorf("rollup %s: reading the parent %s of table %s: %w", r.c.Name, keyhash.Item(parent), o.Table, err)
		}
		if it.Exists() {
			return a.outcome()
		}
	}
	return r.deleteOrphan(ctx, rec, parent)
}

func (r *Rollup) deleteOrphan(ctx context.Context, rec *sluice.Record, parent sluice.Item) error {
	o := r.c.Orphans
	if o.Table == rec.Table && parent.Equal(rec.Keys) { // its own parent, of which no transaction takes a check and a delete
		return sluice.Skip("child is gone, or belongs to another parent")
	}
	gone := dynamo.Check(o.Table, parent, "attribute_not_exists(#k)")
	for name := range parent.All() {
		gone = gone.Name("#k", name)
		break
	}
	child := dynamo.Delete(rec.Table, rec.Keys)
	for i, name := range o.While {
		n, v := fmt.Sprintf("#w%d", i), fmt.Sprintf(":w%d", i)
		condition := "attribute_not_exists(" + n + ")"
		for _, value := range rec.New.Only(name).All() {
			condition = n + " = " + v
			child = child.Value(v, value)
		}
		if i > 0 {
			condition = child.Condition + " AND " + condition
		}
		child = child.If(condition).Name(n, name)
	}
	err := o.Transact(ctx, gone, child)
	if failed, ok := errors.AsType[*dynamo.ConditionError](err); ok {
		if slices.Contains(failed.Failed, 0) {
			return sluice.Skip("parent exists again")
		}
		return sluice.Skip("child is gone, or belongs to another parent")
	}
	if err != nil {
		return fmt.Errorf("rollup %s: deleting the orphan %s of table %s: %w", r.c.Name, keyhash.Item(rec.Keys), rec.Table, err)
	}
	return nil
}
