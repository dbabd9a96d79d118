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

// Orphans deletes a child that is inserted while its parent does not exist. The
// child first counts at its other parents, and the record of its deletion
// subtracts it again. So a child's end takes away what it added, whatever happens
// to its parents.
//
// The counting transaction itself shows whether the parent exists. The parent is
// read only if the transaction was applied before and its response was lost, or if
// the child adds nothing to it. The child is deleted on condition that the parent
// still does not exist. If the parent returns in between, it lacks the count of
// the child, which stays: a Recount finds that.
type Orphans struct {
	// Table of the parents: the table of one of Counts, without Create, whose
	// Key finds the parent. A child without a parent key fails permanently.
	Table string
	// While lists the attributes of the child that Key uses, besides those of
	// its own key. The child is deleted only while they are unchanged.
	While []string
	// Transact makes all writes or none, such as sinks/dynamodb.Store.Transact.
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

// inserted is Handle for an inserted child, when orphans are deleted.
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
		return nil // the parent exists
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
	if o.Table == rec.Table && parent.Equal(rec.Keys) { // the child is its own parent: a transaction cannot check and delete one item
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
