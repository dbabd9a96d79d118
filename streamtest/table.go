package streamtest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/views"
	"github.com/sluicehq/sluice/item"
)

var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

// Table is a table of a [Service]. Its methods are safe for concurrent use.
type Table struct {
	s       *Service
	name    string
	keys    []string     // partition key, then any sort key
	kinds   [2]item.Kind // of the keys, known after the first item
	created time.Time
	deleted bool
	opaque  bool // see TableOptions.OpaqueShardIDs

	items  map[string]sluice.Item
	stream *stream // the latest; nil if none
	log    []logged
}

// TableOptions configure a table.
type TableOptions struct {
	PartitionKey string // default "pk"
	SortKey      string // default none
	// View is the stream's view type: KEYS_ONLY, NEW_IMAGE, OLD_IMAGE or
	// NEW_AND_OLD_IMAGES (default).
	View string
	// Shards is the number of shards at the start of the stream. Default 1.
	Shards int
	// OpaqueShardIDs makes shard ids without the creation time. AWS does not
	// promise any form of id.
	OpaqueShardIDs bool
	// NoStream leaves the stream to [Table.EnableStream].
	NoStream bool
}

func (o TableOptions) withDefaults() TableOptions {
	o.PartitionKey = cmp.Or(o.PartitionKey, "pk")
	o.View = cmp.Or(o.View, item.BothImages.String())
	o.Shards = cmp.Or(o.Shards, 1)
	return o
}

// CreateTable makes an empty table. A recreated table has a stream with another
// ARN.
func (s *Service) CreateTable(name string, o TableOptions) *Table {
	o = o.withDefaults()
	s.mu.Lock()
	defer s.mu.Unlock()
	view, err := views.Parse(o.View)
	switch {
	case !tableName.MatchString(name):
		s.fatalf("CreateTable: invalid name %q; want 3 to 255 letters, digits, '_', '-' and '.'", name)
	case s.tables[name] != nil:
		s.fatalf("CreateTable: table %q exists", name)
	case err != nil:
		s.fatalf("CreateTable: table %s: TableOptions.View: %v", name, err)
	case o.Shards < 0:
		s.fatalf("CreateTable: table %s: TableOptions.Shards is %d", name, o.Shards)
	case o.SortKey == o.PartitionKey:
		s.fatalf("CreateTable: table %s: both keys are %q", name, o.SortKey)
	}
	t := &Table{s: s, name: name, keys: []string{o.PartitionKey}, created: s.now(), opaque: o.OpaqueShardIDs, items: make(map[string]sluice.Item)}
	if o.SortKey != "" {
		t.keys = append(t.keys, o.SortKey)
	}
	s.tables[name] = t
	if !o.NoStream {
		t.newStream(view, o.Shards)
	}
	return t
}

func (t *Table) arn() string {
	return fmt.Sprintf("arn:aws:dynamodb:%s:%s:table/%s", serviceRegion, serviceAccount, t.name)
}

func (t *Table) keySchema() []keyElement {
	schema := []keyElement{{t.keys[0], "HASH"}}
	if len(t.keys) > 1 {
		schema = append(schema, keyElement{t.keys[1], "RANGE"})
	}
	return schema
}

// Name returns the table's name.
func (t *Table) Name() string { return t.name }

// Put writes a whole item, like PutItem, and returns the sequence number of the
// change's record. It is "" if nothing changed, for which DynamoDB makes no
// record, or if the table has no enabled stream.
//
// The item is DynamoDB JSON ({"pk":{"S":"a"},"n":{"N":"1"}}) in a string or
// []byte, a sluice.Item, or a map[string]any of plain Go values: strings, numbers,
// json.Number, bools, nil, []byte, []any and map[string]any.
func (t *Table) Put(item any) sluice.Sequence {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	image, key := t.parse("Put", item)
	old := t.items[key]
	if old.Equal(image) {
		return ""
	}
	t.items[key] = image
	return t.record(old, image, false)
}

// Delete deletes the item with the given key attributes, in a form that Put
// accepts, and returns the sequence number of the record: "" if the item does not
// exist.
func (t *Table) Delete(key any) sluice.Sequence {
	return t.remove("Delete", key, false)
}

// Expire deletes an item like DynamoDB at the end of its time to live: the record
// names the service as the principal.
func (t *Table) Expire(key any) sluice.Sequence {
	return t.remove("Expire", key, true)
}

func (t *Table) remove(what string, v any, ttl bool) sluice.Sequence {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	keys, key := t.parse(what, v)
	if keys.Len() != len(t.keys) {
		t.s.fatalf("%s: table %s: want the key attributes %q and no others", what, t.name, t.keys)
	}
	old, ok := t.items[key]
	if !ok {
		return ""
	}
	delete(t.items, key)
	return t.record(old, sluice.Item{}, ttl)
}

// parse parses an item or its keys, and returns its name in the table.
func (t *Table) parse(what string, v any) (sluice.Item, string) {
	if t.deleted {
		t.s.fatalf("%s: table %s was deleted", what, t.name)
	}
	it, err := stored(v)
	if err != nil {
		t.s.fatalf("%s: table %s: %v", what, t.name, err)
	}
	var key []byte
	for i, name := range t.keys {
		v, ok := attribute(it, name)
		switch {
		case !ok:
			t.s.fatalf("%s: table %s: the key attribute %q is missing", what, t.name, name)
		case v.Kind() != item.S && v.Kind() != item.N && v.Kind() != item.B || v.Len() == 0:
			t.s.fatalf("%s: table %s: the key attribute %q is a %v of length %d; want a string, number or bytes that are not empty",
				what, t.name, name, v.Kind(), v.Len())
		case t.kinds[i] != item.Invalid && t.kinds[i] != v.Kind():
			t.s.fatalf("%s: table %s: the key attribute %q is a %v, but was a %v before", what, t.name, name, v.Kind(), t.kinds[i])
		}
		t.kinds[i] = v.Kind()
		key = appendValue(key, v)
	}
	return it, string(key)
}

// attribute finds an attribute by its whole name.
func attribute(it sluice.Item, name string) (item.Value, bool) {
	for n, v := range it.All() {
		if n == name {
			return v, true
		}
	}
	return item.Value{}, false
}

// keysOf returns the key attributes of an item.
func (t *Table) keysOf(it sluice.Item) sluice.Item { return it.Only(t.keys...) }

// Change is one record that was ever in a table's streams.
type Change struct {
	StreamARN string
	ShardID   string
	Sequence  sluice.Sequence
	Event     sluice.EventName
	Keys      sluice.Item
	Time      time.Time // exact, unlike the record's
	Trimmed   bool      // no longer readable
}

// logged is the place of a record.
type logged struct {
	shard *shard
	at    int
}

// Changes returns every record of the table's streams, including disabled ones, in
// the order of writing: a reader that loses nothing has seen all of them.
func (t *Table) Changes() []Change {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	now, retention := t.s.now(), t.s.limits.Retention
	changes := make([]Change, 0, len(t.log))
	for _, l := range t.log {
		sh := l.shard
		r := &sh.records[l.at]
		changes = append(changes, Change{
			StreamARN: sh.stream.arn, ShardID: sh.id, Sequence: r.seq, Event: r.event, Keys: r.keys, Time: r.at,
			Trimmed: l.at < sh.trimmed || now.Sub(r.at) >= retention,
		})
	}
	return changes
}

// Shards returns the shards of the table's latest stream that are not trimmed, by
// creation.
func (t *Table) Shards() []ShardInfo {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.stream == nil {
		return nil
	}
	shards := t.stream.list(t.s.now(), t.s.limits.Retention)
	slices.SortFunc(shards, func(a, b *shard) int { return a.nth - b.nth })
	infos := make([]ShardInfo, 0, len(shards))
	for _, sh := range shards {
		infos = append(infos, sh.info())
	}
	return infos
}
