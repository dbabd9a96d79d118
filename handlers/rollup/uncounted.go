package rollup

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/item"
)

// A child written while its parent does not exist is not counted. That must stay
// so: its end must not be subtracted from a parent created later. A row beside the
// markers records the child and that parent. It is written in the transaction that
// would have counted the child, and deleted in the one in which the child leaves
// the parent. A recount counts such children; a second row about the parent's
// number then voids the first. A third row records that the parent has such
// children. A recount that finds a right counter looks for it.
const (
	uncounted = "uncounted"
	recounted = "recounted"
	earlyRow  = "early"
	attrAt    = "at" // N, milliseconds
)

// withhold removes from a change the numbers that must not be subtracted, and
// returns the deletions of rows.
func (r *Rollup) withhold(ctx context.Context, rec *sluice.Record, c *change) (gone []dynamo.Op, err error) {
	if c.Create {
		return nil, nil
	}
	id := rowID(r.c.Name, uncounted, rec.Table, rec.Keys, c.Table, c.Key)
	if c.had {
		row, err := r.c.Get(ctx, r.c.Markers, rowKey(id))
		if err != nil {
			return nil, fmt.Errorf("reading whether the child %s of table %s counts at %s of table %s: %w", keyhash.Item(rec.Keys), rec.Table, keyhash.Item(c.Key), c.Table, err)
		}
		if row.Exists() {
			since, _ := row.Lookup(attrAt)
			if err := r.keepRecounted(ctx, c, since); err != nil {
				return nil, err
			}
			if !c.has {
				gone = append(gone, dynamo.Delete(r.c.Markers, rowKey(id)))
			}
		}
	}
	if c.has {
		c.Else = dynamo.Update(r.c.Markers, rowKey(id), "SET #at = :at, #child = :child, #parent = :parent").
			Name("#at", attrAt).Value(":at", r.c.Now().UnixMilli()).
			Name("#child", "child").Value(":child", string(rec.Keys.Raw())).
			Name("#parent", "parent").Value(":parent", string(c.Key.Raw()))
	}
	return gone, nil
}

// keepRecounted keeps only the numbers of an uncounted child that were recounted
// since.
func (r *Rollup) keepRecounted(ctx context.Context, c *change, since item.Value) error {
	uncounted, _ := since.Int64()
	for _, name := range slices.Sorted(maps.Keys(c.By)) {
		row, err := r.c.Get(ctx, r.c.Markers, rowKey(recountID(r.c.Name, c.Table, c.Key, name)))
		if err != nil {
			return fmt.Errorf("reading when %q of %s of table %s was recounted: %w", name, keyhash.Item(c.Key), c.Table, err)
		}
		at, _ := row.Lookup(attrAt)
		if n, ok := at.Int64(); !ok || n < uncounted {
			delete(c.By, name)
		}
	}
	return nil
}

// noteEarly records which parents have children that came before them. It runs
// after the transaction that finds it out. After a crash in between, the record
// comes again, and the row of its child shows it.
func (r *Rollup) noteEarly(ctx context.Context, rec *sluice.Record, a applied, changes []change, id string, expires time.Time) error {
	var ops []dynamo.Op
	for _, c := range changes {
		if c.Else.Kind == 0 {
			continue
		}
		came := slices.ContainsFunc(a.Dropped, func(add dynamo.Add) bool { return add.Table == c.Table && add.Key.Equal(c.Key) })
		if a.Before {
			row, err := r.c.Get(ctx, r.c.Markers, c.Else.Key)
			if err != nil {
				return fmt.Errorf("reading whether the child %s of table %s counts at %s of table %s: %w", keyhash.Item(rec.Keys), rec.Table, keyhash.Item(c.Key), c.Table, err)
			}
			came = row.Exists()
		}
		if came {
			ops = append(ops, parentOp(r.c.Markers, earlyID(r.c.Name, c.Table, c.Key), c.Key, r.c.Now()))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	if _, err := r.c.Once(ctx, dynamo.Unit{Marker: dynamo.NewMarker(r.c.Markers, id+"#"+earlyRow, expires), Ops: ops}); err != nil {
		return fmt.Errorf("noting that a child of table %s came before its parent: %w", rec.Table, err)
	}
	return nil
}

func earlyID(name, table string, parent sluice.Item) string {
	return rowID(name, earlyRow, table, parent, "", sluice.Item{})
}

// hasEarly reports whether a parent has children that came before it and were not
// recounted since.
func (r *recount) hasEarly(ctx context.Context, l look) (bool, error) {
	if r.DryRun || l.children == 0 {
		return false, nil
	}
	came, ok, err := r.timeOf(ctx, earlyID(r.Name, r.Table, l.key))
	if !ok || err != nil {
		return false, err
	}
	at, ok, err := r.timeOf(ctx, recountID(r.Name, r.Table, l.key, r.Attribute))
	return err == nil && (!ok || at < came), err
}

// timeOf reads the time of a row among the markers; false if it does not exist.
func (r *recount) timeOf(ctx context.Context, id string) (int64, bool, error) {
	row, err := r.Get(ctx, r.Markers, rowKey(id))
	if err != nil {
		return 0, false, fmt.Errorf("reading of table %s when a parent was recounted: %w", r.Markers, err)
	}
	at, _ := row.Lookup(attrAt)
	n, ok := at.Int64()
	return n, ok, nil
}

// parentOp writes a row about a parent.
func parentOp(markers, id string, parent sluice.Item, at time.Time) dynamo.Op {
	return dynamo.Update(markers, rowKey(id), "SET #at = :at, #parent = :parent").
		Name("#at", attrAt).Value(":at", at.UnixMilli()).
		Name("#parent", "parent").Value(":parent", string(parent.Raw()))
}

func recountID(name, table string, parent sluice.Item, attribute string) string {
	return rowID(name, recounted, table, parent, attribute, sluice.Item{})
}

func rowKey(id string) sluice.Item { return item.Of(item.String("pk", id)) }

// rowID has the same length for any keys. Order and spelling of their attributes
// do not change it.
func rowID(name, kind, table string, key sluice.Item, other string, otherKey sluice.Item) string {
	var text []byte
	add := func(s string) {
		text = binary.AppendUvarint(text, uint64(len(s)))
		text = append(text, s...)
	}
	add(table)
	addKey(add, key)
	add(other)
	addKey(add, otherKey)
	sum := sha256.Sum256(text)
	return name + "#" + kind + "#" + hex.EncodeToString(sum[:])
}

func addKey(add func(string), key sluice.Item) {
	values := map[string]item.Value{}
	for name, v := range key.All() {
		values[name] = v
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		add(name)
		add(v.Kind().String())
		if v.Kind() == item.B {
			add(string(v.Bytes()))
		} else {
			add(v.Str())
		}
	}
}
