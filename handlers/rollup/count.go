package rollup

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// Count is a number of each parent: its children, or their sum.
type Count struct {
	Table     string // of the parents
	Attribute string // of the parent, top-level; a missing one is 0

	// Key returns the key of a child's parent; the absent Item for a child
	// without one. [By] and [From] make such functions.
	Key func(child sluice.Item) sluice.Item

	// Of is the attribute of the child, or dotted path, to sum: a 64-bit
	// integer. A child without it counts 0 (default: each child counts 1).
	Of string

	// When selects the children that count (default: all). It must depend only
	// on the child.
	When func(child sluice.Item) bool

	// Create creates a missing parent. Without it, additions to a missing
	// parent are dropped.
	Create bool
}

func (n Count) validate() error {
	var errs []error
	if n.Table == "" {
		errs = append(errs, errors.New("Table is missing"))
	}
	if n.Attribute == "" {
		errs = append(errs, errors.New("Attribute is missing"))
	}
	if n.Key == nil {
		errs = append(errs, errors.New("Key is missing"))
	}
	return errors.Join(errs...)
}

// By is the Key for parents whose key attributes have the same names in the child.
// A child has no parent if it lacks one, or if the value cannot be a key, such as
// NULL or an empty text.
func By(attributes ...string) func(child sluice.Item) sluice.Item {
	attributes = slices.Clone(attributes)
	return func(child sluice.Item) sluice.Item {
		key := child.Only(attributes...)
		if key.Len() != len(attributes) {
			return sluice.Item{}
		}
		for _, v := range key.All() {
			if !isKey(v) {
				return sluice.Item{}
			}
		}
		return key
	}
}

// From is the Key for parents whose key attributes have other names in the child:
// attributes maps the parent's names to the child's. A child has no parent in the
// same cases as with By.
func From(attributes map[string]string) func(child sluice.Item) sluice.Item {
	names := slices.Sorted(maps.Keys(attributes))
	attributes = maps.Clone(attributes)
	return func(child sluice.Item) sluice.Item {
		var key []item.Attribute
		for _, name := range names {
			v, ok := child.Lookup(attributes[name])
			if !ok || !isKey(v) {
				return sluice.Item{}
			}
			switch v.Kind() {
			case item.N:
				key = append(key, item.Number(name, v.Str()))
			case item.B:
				key = append(key, item.Binary(name, v.Bytes()))
			default:
				key = append(key, item.String(name, v.Str()))
			}
		}
		return item.Of(key...)
	}
}

// isKey reports whether v can be a key attribute. Another value would fail the
// whole transaction, including the record's additions to other parents.
func isKey(v item.Value) bool {
	k := v.Kind()
	return (k == item.S || k == item.N || k == item.B) && v.Len() > 0
}

// value returns the number that a child contributes.
func value(child sluice.Item, of string, when func(sluice.Item) bool) (int64, error) {
	if when != nil && !when(child) {
		return 0, nil
	}
	if of == "" {
		return 1, nil
	}
	v, ok := child.Lookup(of)
	if !ok {
		return 0, nil
	}
	n, whole := v.Int64()
	if !whole || n == math.MinInt64 { // its negation would overflow
		return 0, fmt.Errorf("attribute %q is no whole number of 64 bits (type %v), and cannot be summed", of, v.Kind())
	}
	return n, nil
}

// change is a record's addition to one parent.
type change struct {
	dynamo.Add
	had, has bool // the old or the new image counts there
}

// counted returns the record's additions to the parents of its item.
func counted(counts []Count, rec *sluice.Record) ([]change, error) {
	if len(counts) == 0 {
		return nil, nil
	}
	switch {
	case rec.EventName != sluice.Insert && !rec.Old.Exists():
		return nil, errors.New("the record has no old image, which says what no longer counts: the view type of the stream must be NEW_AND_OLD_IMAGES")
	case rec.EventName != sluice.Remove && !rec.New.Exists():
		return nil, errors.New("the record has no new image, which says what counts: the view type of the stream must be NEW_AND_OLD_IMAGES")
	}
	var changes []change
	for _, n := range counts {
		for _, side := range []struct {
			image sluice.Item
			sign  int64
		}{{rec.Old, -1}, {rec.New, +1}} {
			if !side.image.Exists() {
				continue
			}
			v, err := value(side.image, n.Of, n.When)
			if err != nil {
				return nil, err
			}
			key := n.Key(side.image)
			if v == 0 || !key.Exists() {
				continue
			}
			i := slices.IndexFunc(changes, func(c change) bool { return c.Table == n.Table && c.Key.Equal(key) })
			if i < 0 {
				i = len(changes)
				changes = append(changes, change{Add: dynamo.Add{Table: n.Table, Key: key, By: map[string]int64{}, Create: n.Create}})
			}
			c := &changes[i]
			c.had = c.had || side.sign < 0
			c.has = c.has || side.sign > 0
			if err := addTo(c.By, n.Attribute, side.sign*v); err != nil {
				return nil, fmt.Errorf("%w of table %s", err, n.Table)
			}
		}
	}
	return slices.DeleteFunc(changes, func(c change) bool { return len(c.By) == 0 }), nil
}

// addTo adds n to a number of by, and removes it if the result is 0.
func addTo(by map[string]int64, name string, n int64) error {
	sum := by[name] + n
	if (sum > n) != (by[name] > 0) && by[name] != 0 {
		return fmt.Errorf("the sum for attribute %q does not fit into 64 bits", name)
	}
	if by[name] = sum; sum == 0 {
		delete(by, name)
	}
	return nil
}

// merge merges b into adds. Additions to one item become one Add, or none if they
// cancel out.
func merge(adds []dynamo.Add, b dynamo.Add) ([]dynamo.Add, error) {
	i := slices.IndexFunc(adds, func(a dynamo.Add) bool {
		return a.Table == b.Table && a.Create == b.Create && a.Key.Equal(b.Key)
	})
	if i < 0 {
		return append(adds, b), nil
	}
	by := maps.Clone(adds[i].By)
	for name, n := range b.By {
		if err := addTo(by, name, n); err != nil {
			return nil, fmt.Errorf("%w of table %s", err, b.Table)
		}
	}
	if len(by) == 0 {
		return slices.Delete(adds, i, i+1), nil
	}
	adds[i].By = by
	return adds, nil
}
