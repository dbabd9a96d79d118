package tabletest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// DB is a set of tables. Its methods are safe for concurrent use.
type DB struct {
	// Fault, if it is set, is asked before and after each write takes effect;
	// its error is the write's.
	Fault func(after bool, ops []dynamo.Op) error
	// ReadFault, if it is set, is asked before each read.
	ReadFault func() error

	mu     sync.Mutex
	tables map[string]*table
	stream []sluice.Record
}

type table struct {
	name  string
	keys  []string // partition, sort
	items map[string]sluice.Item
}

// Create makes a table with a partition key and, if sort is not "", a sort key.
func (db *DB) Create(name, partition, sort string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.tables == nil {
		db.tables = make(map[string]*table)
	}
	keys := []string{partition}
	if sort != "" {
		keys = append(keys, sort)
	}
	db.tables[name] = &table{name: name, keys: keys, items: make(map[string]sluice.Item)}
}

// KeyNames returns the names of a table's key attributes, the partition key first.
func (db *DB) KeyNames(_ context.Context, name string) ([]string, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.tables[name]
	if t == nil {
		return nil, fmt.Errorf("there is no table %q", name)
	}
	return slices.Clone(t.keys), nil
}

// Records returns the new records of the streams since the last call, in order.
func (db *DB) Records() []sluice.Record {
	db.mu.Lock()
	defer db.mu.Unlock()
	recs := db.stream
	db.stream = nil
	return recs
}

// Items returns a table's items in the order of their keys.
func (db *DB) Items(name string) []sluice.Item {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.tables[name]
	items := make([]sluice.Item, 0, len(t.items))
	for _, id := range slices.Sorted(maps.Keys(t.items)) {
		items = append(items, t.items[id])
	}
	return items
}

// Get reads an item, consistently; a missing item is the absent Item.
func (db *DB) Get(_ context.Context, name string, key sluice.Item) (sluice.Item, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	t, err := db.read(name)
	if err != nil {
		return sluice.Item{}, err
	}
	id, err := t.id(key)
	return t.items[id], err
}

func (db *DB) read(name string) (*table, error) {
	if db.ReadFault != nil {
		if err := db.ReadFault(); err != nil {
			return nil, err
		}
	}
	if db.tables[name] == nil {
		return nil, sluice.Permanent(fmt.Errorf("there is no table %q", name))
	}
	return db.tables[name], nil
}

func (t *table) id(it sluice.Item) (string, error) {
	var id []string
	for _, k := range t.keys {
		v, ok := it.Lookup(k)
		if !ok || v.Str() == "" {
			return "", sluice.Permanent(fmt.Errorf("table %s: %s has no key %s", t.name, it.Raw(), k))
		}
		id = append(id, v.Str())
	}
	return strings.Join(id, "\x00"), nil
}

// Query reads the items of a partition of a table or of an index <name> with
// the keys <name>PK and <name>SK, in the order of their sort keys as text.
func (db *DB) Query(_ context.Context, q dynamo.Query) (dynamo.Page, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	t, err := db.read(q.Table)
	if err != nil {
		return dynamo.Page{}, err
	}
	sort := ""
	switch {
	case q.Index != "":
		sort = q.Index + "SK"
	case len(t.keys) > 1:
		sort = t.keys[1]
	}
	want := item.Of(q.Partition)
	var found []sluice.Item
	for _, it := range t.items {
		if q.Index != "" {
			if _, indexed := it.Lookup(sort); !indexed {
				continue
			}
		}
		if has(it, want) && sorts(it, sort, q.Sort) {
			found = append(found, it)
		}
	}
	slices.SortFunc(found, func(a, b sluice.Item) int {
		c := strings.Compare(str(a, sort)+"\x00"+str(a, t.keys[0]), str(b, sort)+"\x00"+str(b, t.keys[0]))
		if q.Descending {
			return -c
		}
		return c
	})
	if q.After.Exists() {
		i := slices.IndexFunc(found, func(it sluice.Item) bool { return has(it, q.After) })
		found = found[i+1:]
	}
	var page dynamo.Page
	if q.Limit > 0 && len(found) > q.Limit {
		found = found[:q.Limit]
		page.Next = found[q.Limit-1].Only(t.keys...)
	}
	for _, it := range found {
		if len(q.Attributes) > 0 {
			it = it.Only(q.Attributes...)
		}
		page.Items = append(page.Items, it)
	}
	return page, nil
}

// has reports whether it has all attributes of part.
func has(it, part sluice.Item) bool {
	for name, v := range part.All() {
		if w, ok := it.Lookup(name); !ok || !w.Equal(v) {
			return false
		}
	}
	return true
}

func sorts(it sluice.Item, name string, s dynamo.Sort) bool {
	if s.Op == "" {
		return true
	}
	v, key := str(it, name), keyText(s.Key)
	switch s.Op {
	case "begins_with":
		return strings.HasPrefix(v, key)
	case "<":
		return v < key
	case "<=":
		return v <= key
	case "=":
		return v == key
	case ">=":
		return v >= key
	case ">":
		return v > key
	case "BETWEEN":
		return v >= key && v <= keyText(s.Second)
	}
	panic("tabletest: Sort." + s.Op)
}

// keyText is the text of a key attribute.
func keyText(a item.Attribute) (text string) {
	for _, v := range item.Of(a).All() {
		text = v.Str()
	}
	return text
}

func str(it sluice.Item, name string) string {
	v, _ := it.Lookup(name)
	return v.Str()
}

// Put writes an item.
func (db *DB) Put(ctx context.Context, name string, it sluice.Item) error {
	return db.Write(ctx, dynamo.Put(name, it))
}

// DeleteGuarded deletes items one after another, each under its condition.
func (db *DB) DeleteGuarded(ctx context.Context, d dynamo.GuardedDelete) {
	for _, key := range d.Keys {
		err := d.Guard(ctx)
		if err == nil {
			err = db.Write(ctx, d.Op(key))
		}
		d.Done([]sluice.Item{key}, []error{err})
	}
}

// Write makes one write.
func (db *DB) Write(_ context.Context, op dynamo.Op) error {
	if op.Kind == dynamo.CheckOp {
		return sluice.Permanent(errors.New("a check is for transactions"))
	}
	return db.write([]dynamo.Op{op})
}

// Transact makes all writes or none.
func (db *DB) Transact(_ context.Context, ops ...dynamo.Op) error { return db.write(ops) }

func (db *DB) write(ops []dynamo.Op) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	fault := db.Fault
	if fault == nil {
		fault = func(bool, []dynamo.Op) error { return nil }
	}
	if err := fault(false, ops); err != nil {
		return err
	}
	var refused dynamo.ConditionError
	var changes []change
	for i, op := range ops {
		c, holds, err := db.plan(op)
		if err != nil {
			return sluice.Permanent(err)
		}
		if slices.ContainsFunc(changes, func(o change) bool { return o.table == c.table && o.id == c.id }) {
			return sluice.Permanent(errors.New("two writes of a transaction to one item"))
		}
		if !holds {
			refused.Failed = append(refused.Failed, i)
			refused.Tables = append(refused.Tables, op.Table)
			refused.Items = append(refused.Items, c.old)
		}
		changes = append(changes, c)
	}
	if len(refused.Failed) > 0 {
		return &refused
	}
	for _, c := range changes {
		db.apply(c)
	}
	return fault(true, ops)
}

type change struct {
	table    *table
	id       string
	old, new sluice.Item
}

// plan returns the change of an Op, and whether its condition holds.
func (db *DB) plan(op dynamo.Op) (c change, holds bool, err error) {
	t := db.tables[op.Table]
	if t == nil {
		return c, false, fmt.Errorf("there is no table %q", op.Table)
	}
	key := op.Key
	if op.Kind == dynamo.PutOp {
		key = op.Item
	}
	c.table = t
	if c.id, err = t.id(key); err != nil {
		return c, false, err
	}
	c.old = t.items[c.id]
	e := expression{op: op, used: make(map[string]bool)}
	holds = e.holds(c.old)
	switch op.Kind {
	case dynamo.PutOp:
		c.new = op.Item
	case dynamo.UpdateOp:
		base := c.old
		if !base.Exists() {
			base = op.Key
		}
		c.new = e.update(base)
	case dynamo.CheckOp:
		c.new = c.old
	}
	e.refuseUnused()
	return c, holds, nil
}

func (db *DB) apply(c change) {
	name, keys := c.table.name, streamtest.WithKeys(c.table.keys[0], c.table.keys[1:]...)
	switch {
	case !c.new.Exists():
		delete(c.table.items, c.id)
		if c.old.Exists() {
			db.stream = append(db.stream, streamtest.Remove(name, c.old, keys))
		}
		return
	case !c.old.Exists():
		db.stream = append(db.stream, streamtest.Insert(name, c.new, keys))
	case !c.old.Equal(c.new): // a write that changes nothing has no record
		db.stream = append(db.stream, streamtest.Modify(name, c.old, c.new, keys))
	}
	c.table.items[c.id] = c.new
}
