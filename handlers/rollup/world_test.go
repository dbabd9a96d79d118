package rollup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a database in memory: the counters of parents, and markers.
type world struct {
	parents map[string]map[string]int64 // by table and key, then attribute
	markers map[string]int64            // id to expiry
	rows    map[string]bool             // of children that do not count
	units   []dynamo.Unit               // those that were asked for
	now     time.Time

	before, after func() error // fail Once before it is applied, or lose its answer
}

func newWorld(parents ...string) *world {
	w := &world{parents: map[string]map[string]int64{}, markers: map[string]int64{}, rows: map[string]bool{}, now: created}
	for _, p := range parents {
		w.parents[p] = map[string]int64{}
	}
	return w
}

// created is when records of recordtest are made.
var created = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)

func place(table string, key sluice.Item) string { return table + string(key.Raw()) }

func (w *world) Once(_ context.Context, u dynamo.Unit) (a dynamo.Applied, err error) {
	w.units = append(w.units, u)
	if w.before != nil {
		if err := w.before(); err != nil {
			return a, err
		}
	}
	id, _ := u.Marker.Item.Lookup("pk")
	ttl, _ := u.Marker.Item.Lookup("ttl")
	if _, there := w.markers[id.Str()]; there {
		return dynamo.Applied{Before: true}, nil
	}
	for i, add := range u.Adds {
		p := w.parents[place(add.Table, add.Key)]
		if p == nil && !add.Create {
			a.Dropped = append(a.Dropped, i)
			if add.Else.Kind != 0 {
				w.rows[place(add.Else.Table, add.Else.Key)] = true
			}
			continue
		}
		if p == nil {
			p = map[string]int64{}
			w.parents[place(add.Table, add.Key)] = p
		}
		for name, n := range add.By {
			p[name] += n
		}
	}
	w.markers[id.Str()], _ = ttl.Int64()
	if w.after != nil {
		if err := w.after(); err != nil {
			return dynamo.Applied{}, err
		}
	}
	return a, nil
}

func (w *world) Get(_ context.Context, table string, key sluice.Item) (sluice.Item, error) {
	if !w.rows[place(table, key)] {
		return sluice.Item{}, nil
	}
	return key.With(item.Number(attrAt, fmt.Sprint(w.now.UnixMilli()))), nil
}

// expire deletes markers as the table's time to live does.
func (w *world) expire() {
	maps.DeleteFunc(w.markers, func(_ string, ttl int64) bool { return ttl < w.now.Unix() })
}

func (w *world) String() string {
	var lines []string
	for _, p := range slices.Sorted(maps.Keys(w.parents)) {
		lines = append(lines, fmt.Sprint(p, " ", w.parents[p]))
	}
	return strings.Join(lines, "\n")
}

const (
	shopA = `shops{"shop":{"S":"a"}}`
	shopB = `shops{"shop":{"S":"b"}}`
	owner = `owners{"owner":{"S":"o"}}`
)

// orders counts the orders of shops, and sums the payments of their owners.
func orders(t *testing.T, w *world, edit ...func(*Config)) *Rollup {
	t.Helper()
	c := Config{
		Name: "orders",
		Counts: []Count{
			{Table: "shops", Attribute: "orders", Key: By("shop")},
			{Table: "owners", Attribute: "paid", Key: By("owner"), Of: "price"},
			{Table: "owners", Attribute: "open", Key: By("owner"), When: func(it sluice.Item) bool {
				v, _ := it.Lookup("state")
				return v.Is("open")
			}},
		},
		Once: w.Once, Get: w.Get, Markers: "markers",
		Now: func() time.Time { return w.now },
	}
	for _, e := range edit {
		e(&c)
	}
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// order is an image of an order.
func order(shop, state, price string) string {
	s := fmt.Sprintf(`{"pk":{"S":"a"},"shop":{"S":%q},"owner":{"S":"o"},"state":{"S":%q}`, shop, state)
	if price != "" {
		s += fmt.Sprintf(`,"price":{"N":%q}`, price)
	}
	return s + "}"
}

func record(old, new string) *sluice.Record {
	rec := recordtest.New(recordtest.Spec{Old: old, New: new})
	return &rec
}

// seq returns items as Children does.
func seq(items ...sluice.Item) iter.Seq2[sluice.Item, error] {
	return func(yield func(sluice.Item, error) bool) {
		for _, it := range items {
			if !yield(it, nil) {
				return
			}
		}
	}
}

var errDown = errors.New("down")

func parse(s string) sluice.Item {
	it, err := item.Parse([]byte(s))
	if err != nil {
		panic(err)
	}
	return it
}
