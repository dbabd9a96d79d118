package cascade

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
)

// one is a table with rows of many kinds: the parent's own row is in the
// partition of its children.
func one() *world {
	w := newWorld()
	w.table("one", "PK", "SK").put(
		`{"PK":{"S":"s-1"},"SK":{"S":"search"}}`,
		`{"PK":{"S":"s-1"},"SK":{"S":"attempt#1"}}`,
		`{"PK":{"S":"s-1"},"SK":{"S":"attempt#2"}}`,
		`{"PK":{"S":"s-1"},"SK":{"S":"note#1"}}`,
		`{"PK":{"S":"s-1"},"SK":{"S":"log"},"keep":{"BOOL":true},"flags":{"M":{"keep":{"BOOL":true}}}}`,
		`{"PK":{"S":"s-10"},"SK":{"S":"attempt#1"}}`,
		`{"PK":{"S":"MAP#7"},"SK":{"S":"POINT#s-1#1"}}`,
		`{"PK":{"S":"MAP#7"},"SK":{"S":"POINT#s-10#1"}}`,
		`{"PK":{"S":"MAP#7"},"SK":{"S":"x"}}`,
	)
	return w
}

func (w *world) one(children ...Child) Config {
	c := w.config()
	c.Table, c.Key, c.Threshold = "one", []string{"PK", "SK"}, DefaultThreshold
	for i := range children {
		children[i].Table, children[i].Key = "one", []string{"PK", "SK"}
	}
	c.Children = children
	return c
}

const search = `{"PK":{"S":"s-1"},"SK":{"S":"search"}}`

func TestKinds(t *testing.T) {
	partition := Attr{Name: "PK", From: "PK"}
	for _, tt := range []struct {
		name     string
		children []Child
		gone     []string // "PK SK"
	}{
		{"partition", []Child{{Partition: partition}}, []string{"s-1 attempt#1", "s-1 attempt#2", "s-1 log", "s-1 note#1"}},
		{"partition but some", []Child{{Partition: partition, Attributes: []string{"keep", "PK"}, Exclude: func(row sluice.Item) bool {
			v, _ := row.Lookup("keep")
			return v.Bool()
		}}}, []string{"s-1 attempt#1", "s-1 attempt#2", "s-1 note#1"}},
		{"partition but some by a path", []Child{{Partition: partition, Attributes: []string{"flags.keep"}, Exclude: func(row sluice.Item) bool {
			v, _ := row.Lookup("flags.keep")
			return v.Bool()
		}}}, []string{"s-1 attempt#1", "s-1 attempt#2", "s-1 note#1"}},
		{"all but the search", []Child{{Partition: partition, Exclude: func(row sluice.Item) bool {
			v, _ := row.Lookup("SK")
			return !strings.Contains(v.Str(), "#")
		}}}, []string{"s-1 attempt#1", "s-1 attempt#2", "s-1 note#1"}},
		{"prefix", []Child{{Partition: partition, Sort: Attr{Name: "SK", Before: "attempt#"}}}, []string{"s-1 attempt#1", "s-1 attempt#2"}},
		{"two prefixes", []Child{
			{Name: "attempts", Partition: partition, Sort: Attr{Name: "SK", Before: "attempt#"}},
			{Name: "notes", Partition: partition, Sort: Attr{Name: "SK", Before: "note#"}},
		}, []string{"s-1 attempt#1", "s-1 attempt#2", "s-1 note#1"}},
		{"made of the old image", []Child{{
			Partition: Attr{Name: "PK", Before: "MAP#", From: "info.map"},
			Sort:      Attr{Name: "SK", Before: "POINT#", From: "PK", After: "#"},
		}}, []string{"MAP#7 POINT#s-1#1"}},
	} {
		for _, threshold := range []int{DefaultThreshold, 0, 1, Unlimited} {
			synctest.Test(t, func(t *testing.T) {
				w := one()
				before := w.tables["one"].keys()
				w.tables["one"].set(search, sluice.Item{})
				c := w.one(tt.children...)
				c.Threshold, c.PageSize = threshold, 2
				x := must(t, c)
				rec := removed("one", search, `{"PK":{"S":"s-1"},"SK":{"S":"search"},"info":{"M":{"map":{"N":"7"}}}}`)
				if err := x.Remove(t.Context(), rec); err != nil {
					t.Fatal(tt.name, err)
				}
				w.drain(t, x.Work)
				after := w.tables["one"].keys()
				var gone []string
				for _, key := range before {
					if key != search && !slices.Contains(after, key) {
						it := parse(key)
						pk, _ := it.Lookup("PK")
						sk, _ := it.Lookup("SK")
						gone = append(gone, pk.Str()+" "+sk.Str())
					}
				}
				if diff := cmp.Diff(tt.gone, gone); diff != "" {
					t.Error(tt.name, threshold, diff)
				}
			})
		}
	}
}

// The parent's own row in the partition stays even when it is there again in
// the moment between the look at it and the delete.
func TestParentsOwnRowStays(t *testing.T) {
	w := one()
	c := w.one(Child{Partition: Attr{Name: "PK", From: "PK"}})
	c.Get = func(context.Context, string, sluice.Item) (sluice.Item, error) { return sluice.Item{}, nil }
	if err := must(t, c).Remove(t.Context(), removed("one", search, search)); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.tables["one"].rows[search]; !ok || len(w.tables["one"].rows) != 5 {
		t.Errorf("%q", w.tables["one"].keys())
	}
}

// Each child kind of a search is a message of its own.
func TestMessagesOfKinds(t *testing.T) {
	w := one()
	w.tables["one"].set(search, sluice.Item{})
	c := w.one(
		Child{Partition: Attr{Name: "PK", From: "PK"}, Sort: Attr{Name: "SK", Before: "attempt#"}},
		Child{Name: "points#", Partition: Attr{Name: "PK", Before: "MAP#", From: "map"}, Sort: Attr{Name: "SK", Before: "POINT#", From: "PK", After: "#"}},
		Child{Name: "none", Partition: Attr{Name: "PK", From: "nothing"}},
	)
	c.Threshold = 0
	if err := must(t, c).Remove(t.Context(), removed("one", search, `{"PK":{"S":"s-1"},"SK":{"S":"search"},"map":{"S":"7"},"nothing":{"NULL":true}}`)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		`0s {"kind":"cascade.delete","table":"one","key":{"PK":"s-1","SK":{"begins_with":"attempt#"}},"parent":{"table":"one","key":{"PK":"s-1","SK":"search"}},"dedupeKey":"one/s-1/search"}`,
		`0s {"kind":"cascade.delete","table":"one","key":{"PK":"MAP#7","SK":{"begins_with":"POINT#s-1#"}},"parent":{"table":"one","key":{"PK":"s-1","SK":"search"}},"dedupeKey":"one/s-1/search#points%23","child":"points#"}`,
	}, bodies(w)); diff != "" {
		t.Error(diff)
	}
}

// A child that has moved to another parent, is gone, or is excluded by its item
// stays, although the index still shows it. One that the index does not show
// yet goes by the sweep.
func TestChildrenByIndex(t *testing.T) {
	for _, threshold := range []int{DefaultThreshold, 0, Unlimited} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.table("maps", "user_id", "map_id")
			points := w.table("points", "id")
			points.index("byMap", 10*time.Second, "map_id", "at")
			for i := range 200 {
				points.put(fmt.Sprintf(`{"id":{"S":"%03d"},"map_id":{"S":"m-1"},"at":{"N":"%d"}}`, i, i%7))
			}
			time.Sleep(time.Minute)
			points.put(`{"id":{"S":"005"},"map_id":{"S":"m-2"},"at":{"N":"1"}}`) // moved
			points.put(`{"id":{"S":"006"},"at":{"N":"1"}}`)                      // on its own now
			points.put(`{"id":{"S":"007"},"map_id":{"S":"m-1"},"at":{"N":"1"},"pinned":{"BOOL":true}}`)
			points.set(`{"id":{"S":"008"}}`, sluice.Item{})                        // gone
			points.put(`{"id":{"S":"late"},"map_id":{"S":"m-1"},"at":{"N":"99"}}`) // not yet in the index
			c := w.config()
			c.Threshold, c.PageSize = threshold, 30
			c.Children[0] = Child{
				Table: "points", Key: []string{"id"}, Index: "byMap", Partition: Attr{Name: "map_id", From: "map_id"},
				Exclude: func(row sluice.Item) bool { _, ok := row.Lookup("pinned"); return ok },
			}
			x := must(t, c)
			if err := x.Remove(t.Context(), mapRemoved()); err != nil {
				t.Fatal(err)
			}
			if threshold != 0 && len(w.queue) != 1 {
				t.Errorf("%d: %q, want a sweep", threshold, bodies(w))
			}
			w.drain(t, x.Work)
			if diff := cmp.Diff([]string{`{"id":{"S":"005"}}`, `{"id":{"S":"006"}}`, `{"id":{"S":"007"}}`}, points.keys()); diff != "" {
				t.Error(threshold, diff)
			}
			if w.deletes != 197 {
				t.Errorf("%d: %d rows were deleted, 197 were children", threshold, w.deletes)
			}
		})
	}
}

// A child that moves to another parent while its delete waits stays.
func TestChildrenByIndexThatMove(t *testing.T) {
	for _, exclude := range []func(sluice.Item) bool{nil, func(sluice.Item) bool { return false }} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.table("maps", "user_id", "map_id")
			points := w.table("points", "id")
			points.index("byMap", 0, "map_id")
			for i := range 30 {
				points.put(fmt.Sprintf(`{"id":{"S":"%02d"},"map_id":{"S":"m-1"}}`, i))
			}
			w.waits = time.Minute
			time.AfterFunc(30*time.Second, func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				points.put(`{"id":{"S":"07"},"map_id":{"S":"m-2"}}`)
			})
			c := w.config()
			c.Children[0] = Child{Table: "points", Key: []string{"id"}, Index: "byMap", Partition: Attr{Name: "map_id", From: "map_id"}, Exclude: exclude}
			x := must(t, c)
			if err := x.Remove(t.Context(), mapRemoved()); err != nil {
				t.Fatal(err)
			}
			w.drain(t, x.Work)
			if diff := cmp.Diff([]string{`{"id":{"S":"07"}}`}, points.keys()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An index with prefix: the sort key of the item counts, too.
func TestIndexWithPrefix(t *testing.T) {
	w := newWorld()
	w.table("maps", "user_id", "map_id")
	points := w.table("points", "id")
	points.index("byMap", 0, "map_id", "kind")
	points.put(`{"id":{"S":"a"},"map_id":{"S":"m-1"},"kind":{"S":"x#1"}}`, `{"id":{"S":"b"},"map_id":{"S":"m-1"},"kind":{"S":"y#1"}}`,
		`{"id":{"S":"c"},"map_id":{"S":"m-1"},"kind":{"S":"x#2"}}`)
	w.query(t.Context(), dynamo.Query{Table: "points", Index: "byMap", Partition: attribute(parse(`{"map_id":{"S":"m-1"}}`), "map_id")})
	points.index("other", 0, "nothing")
	points.rows[`{"id":{"S":"c"}}`] = parse(`{"id":{"S":"c"},"map_id":{"S":"m-1"},"kind":{"S":"y#2"}}`) // the index does not know
	c := w.config()
	c.Threshold = DefaultThreshold
	c.Children[0] = Child{Table: "points", Key: []string{"id"}, Index: "byMap", Partition: Attr{Name: "map_id", From: "map_id"}, Sort: Attr{Name: "kind", Before: "x#"}}
	if err := must(t, c).Remove(t.Context(), mapRemoved()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`{"id":{"S":"b"}}`, `{"id":{"S":"c"}}`}, points.keys()); diff != "" {
		t.Error(diff)
	}
}

// The children's own records cascade further: one worker has the messages of
// all.
func TestGrandchildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := points(40)
		w.tables["maps"].put(`{"user_id":{"S":"u-1"},"map_id":{"S":"m-1"}}`, `{"user_id":{"S":"u-2"},"map_id":{"S":"m-3"}}`)
		w.tables["points"].put(point("m-3", 1))
		w.table("users", "user_id")
		cm := w.config()
		maps := must(t, cm)
		cu := w.config()
		cu.Table, cu.Key = "users", []string{"user_id"}
		cu.Children = []Child{{Table: "maps", Key: []string{"user_id", "map_id"}, Partition: Attr{Name: "user_id", From: "user_id"}}}
		var stream []*sluice.Record
		cu.Delete = func(ctx context.Context, d dynamo.GuardedDelete) {
			for _, key := range d.Keys {
				if it, ok := w.tables[d.Table].rows[string(key.Raw())]; ok {
					stream = append(stream, removed(d.Table, string(key.Raw()), string(it.Raw())))
				}
			}
			w.delete(ctx, d)
		}
		users := must(t, cu)
		work, err := Worker(users, maps)
		if err != nil {
			t.Fatal(err)
		}
		if err := users.Remove(t.Context(), removed("users", `{"user_id":{"S":"u-1"}}`, "")); err != nil {
			t.Fatal(err)
		}
		w.drain(t, work)
		if len(stream) != 2 {
			t.Fatalf("%d maps were removed", len(stream))
		}
		for _, rec := range stream {
			if err := maps.Remove(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
		}
		w.drain(t, work)
		var left []string
		for _, name := range []string{"maps", "points"} {
			left = append(left, w.tables[name].keys()...)
		}
		if diff := cmp.Diff([]string{
			`{"user_id":{"S":"u-2"},"map_id":{"S":"m-3"}}`,
			`{"map_id":{"S":"m-10"},"point_id":{"S":"p-000001"}}`, `{"map_id":{"S":"m-3"},"point_id":{"S":"p-000001"}}`,
		}, left); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTimeToLive(t *testing.T) {
	w := points(3)
	c := w.config()
	c.Threshold = DefaultThreshold
	rec := sluice.DecodeRecord([]byte(strings.Replace(string(mapRemoved().Raw()), `{`, `{"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},`, 1)))
	if err := must(t, c).Remove(t.Context(), rec); err != nil || w.left(t) != 0 || !rec.IsTTL() {
		t.Errorf("%v, %d left", err, w.left(t))
	}
}

func TestRecordsThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		rec        *sluice.Record
		from       string
		skip       bool
	}{
		{"another table", "a record of table users came to the cascade of table maps", removed("users", mapKey, ""), "map_id", false},
		{"no such key", `has no attribute "user_id"`, removed("maps", `{"map_id":{"S":"m-1"}}`, ""), "map_id", false},
		{"key of a strange type", `is of type BOOL, which no key attribute is`, removed("maps", `{"map_id":{"S":"m-1"},"user_id":{"BOOL":true}}`, ""), "map_id", false},
		{"no old image", "the stream must have old images", removed("maps", mapKey, ""), "folder", false},
		{"no such attribute", "no children by the parent's attributes", removed("maps", mapKey, mapKey), "folder", true},
		{"empty attribute", "no children by the parent's attributes", removed("maps", mapKey, `{"user_id":{"S":"u-1"},"map_id":{"S":"m-1"},"folder":{"S":""}}`), "folder", true},
		{"attribute of a strange type", `attribute "folder" of the parent is of type BOOL`, removed("maps", mapKey, `{"user_id":{"S":"u-1"},"map_id":{"S":"m-1"},"folder":{"BOOL":true}}`), "folder", false},
	} {
		w := points(5)
		c := w.config()
		c.Threshold = DefaultThreshold
		c.Children[0].Partition.From = tt.from
		err := must(t, c).Remove(t.Context(), tt.rec)
		if err == nil || !strings.Contains(err.Error(), tt.want) || sluice.IsPermanent(err) == tt.skip || sluice.IsSkip(err) != tt.skip {
			t.Errorf("%s: %v", tt.name, err)
		}
		if w.left(t) != 5 || w.deletes+len(w.queue) > 0 {
			t.Errorf("%s: %d left, sent %q", tt.name, w.left(t), bodies(w))
		}
	}
}
