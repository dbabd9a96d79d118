package rollup

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/tabletest"
	"github.com/sluicehq/sluice/item"
)

// orphans count orders by shops and owners, in tables; an order without a shop
// goes.
type orphans struct {
	*tabletest.World
	t        *testing.T
	r        *Rollup
	transact func() // before each transaction of a deletion
}

func newOrphans(t *testing.T) *orphans {
	w := &orphans{World: tabletest.NewWorld(time.Now()), t: t}
	w.Create("orders", "pk", "")
	w.Create("shops", "shop", "")
	w.Create("owners", "owner", "")
	w.Create("markers", "pk", "")
	var err error
	w.r, err = New(Config{
		Name: "orders",
		Counts: []Count{
			{Table: "shops", Attribute: "orders", Key: By("shop"), When: func(it sluice.Item) bool {
				v, _ := it.Lookup("state")
				return !v.Is("draft")
			}},
			{Table: "owners", Attribute: "orders", Key: By("owner")},
		},
		Orphans: &Orphans{Table: "shops", While: []string{"shop", "gift"}, Transact: func(ctx context.Context, ops ...dynamo.Op) error {
			if f := w.transact; f != nil {
				w.transact = nil
				f()
			}
			return w.Transact(ctx, ops...)
		}},
		Once: w.Once, Get: w.Get, Markers: "markers", Now: w.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *orphans) put(table, it string) {
	w.t.Helper()
	if err := w.Put(w.t.Context(), table, parse(it)); err != nil {
		w.t.Fatal(err)
	}
}

// handle handles the records of the orders' stream, each the given number of times.
func (w *orphans) handle(times int) (last error) {
	w.t.Helper()
	for _, rec := range w.Records() {
		if rec.Table != "orders" {
			continue
		}
		for range times {
			if last = w.r.Handle(w.t.Context(), &rec); last != nil && !sluice.IsSkip(last) {
				w.t.Fatal(last)
			}
		}
	}
	return last
}

func (w *orphans) state() string {
	var all []string
	for _, table := range []string{"orders", "shops", "owners"} {
		for _, it := range w.Items(table) {
			all = append(all, string(it.AppendJSON(nil, item.JSON{SortedKeys: true})))
		}
	}
	return strings.Join(all, " ")
}

const (
	ordered = `{"pk":{"S":"1"},"shop":{"S":"a"},"owner":{"S":"o"}}`
	draft   = `{"pk":{"S":"1"},"shop":{"S":"a"},"owner":{"S":"o"},"state":{"S":"draft"}}`
	inShop  = `{"owner":"o","pk":"1","shop":"a"}`
)

func TestOrphans(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(w *orphans)
		want string
	}{
		{"goes", func(w *orphans) {
			w.put("orders", ordered)
			w.handle(1)
		}, `{"orders":1,"owner":"o"}`},
		{"is taken off again", func(w *orphans) {
			w.put("orders", ordered)
			w.handle(3)
			w.handle(3)
		}, `{"orders":0,"owner":"o"}`},
		{"stays with its parent", func(w *orphans) {
			w.put("shops", `{"shop":{"S":"a"}}`)
			w.put("orders", ordered)
			w.handle(3)
		}, inShop + ` {"orders":1,"shop":"a"} {"orders":1,"owner":"o"}`},
		{"is not counted, and goes", func(w *orphans) {
			w.put("orders", draft)
			w.handle(3)
		}, `{"orders":1,"owner":"o"}`},
		{"is not counted, and stays", func(w *orphans) {
			w.put("shops", `{"shop":{"S":"a"}}`)
			w.put("orders", draft)
			w.handle(3)
		}, `{"owner":"o","pk":"1","shop":"a","state":"draft"} {"shop":"a"} {"orders":1,"owner":"o"}`},
		{"counted, then the answer was lost", func(w *orphans) {
			w.put("orders", ordered)
			rec := w.Records()[1]
			if _, _, err := w.r.apply(w.t.Context(), &rec); err != nil { // and nothing else happens
				w.t.Fatal(err)
			}
			w.Replay(rec)
			if err := w.r.Handle(w.t.Context(), &rec); err != nil {
				w.t.Error(err)
			}
		}, `{"orders":1,"owner":"o"}`},
		{"its parent comes back", func(w *orphans) {
			w.put("orders", ordered)
			w.transact = func() { w.put("shops", `{"shop":{"S":"a"}}`) }
			if err := w.handle(1); !sluice.IsSkip(err) || !strings.Contains(err.Error(), "parent exists again") {
				w.t.Error(err)
			}
		}, inShop + ` {"shop":"a"} {"orders":1,"owner":"o"}`},
		{"it has another parent by now", func(w *orphans) {
			w.put("orders", ordered)
			w.transact = func() { w.put("orders", strings.Replace(ordered, `"a"`, `"b"`, 1)) }
			if err := w.handle(1); !sluice.IsSkip(err) || !strings.Contains(err.Error(), "another parent") {
				w.t.Error(err)
			}
		}, `{"owner":"o","pk":"1","shop":"b"} {"orders":1,"owner":"o"}`},
		{"an attribute that it did not have", func(w *orphans) {
			w.put("orders", ordered)
			w.transact = func() { w.put("orders", strings.Replace(ordered, `}}`, `},"gift":{"S":"x"}}`, 1)) }
			w.handle(1)
		}, `{"gift":"x","owner":"o","pk":"1","shop":"a"} {"orders":1,"owner":"o"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newOrphans(t)
				w.put("owners", `{"owner":{"S":"o"}}`)
				tt.do(w)
				if got := w.state(); got != tt.want {
					t.Errorf("%s\nwant %s", got, tt.want)
				}
			})
		})
	}
}

// A child may be its own parent, as the root of a tree is. When it is gone by the
// time its record comes, nothing is left to do.
func TestOrphanOfItself(t *testing.T) {
	w := tabletest.NewWorld(time.Now())
	w.Create("nodes", "pk", "")
	w.Create("markers", "pk", "")
	r, err := New(Config{
		Name: "nodes", Markers: "markers", Once: w.Once, Get: w.Get, Now: w.Now,
		Counts:  []Count{{Table: "nodes", Attribute: "children", Key: From(map[string]string{"pk": "parent"})}},
		Orphans: &Orphans{Table: "nodes", While: []string{"parent"}, Transact: w.Transact},
	})
	if err != nil {
		t.Fatal(err)
	}
	root := parse(`{"pk":{"S":"r"},"parent":{"S":"r"}}`)
	if err := w.Put(t.Context(), "nodes", root); err != nil {
		t.Fatal(err)
	}
	rec := w.Records()[0]
	if err := w.Transact(t.Context(), dynamo.Delete("nodes", root.Only("pk"))); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Handle(t.Context(), &rec); !sluice.IsSkip(err) {
			t.Error(err)
		}
	}
}

func TestOrphansThatFail(t *testing.T) {
	w := newOrphans(t)
	w.put("orders", `{"pk":{"S":"1"},"owner":{"S":"o"}}`)
	rec := w.Records()[0]
	if err := w.r.Handle(t.Context(), &rec); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "belongs to no parent") {
		t.Error(err)
	}
	w.put("orders", `{"pk":{"S":"2"},"shop":{"S":"a"},"owner":{"S":"o"}}`)
	rec = w.Records()[0]
	down := errors.New("down")
	writes := 0
	w.Fault = func(after bool, _ []dynamo.Op) error {
		if writes++; writes == 3 { // before the deletion
			return down
		}
		return nil
	}
	if err := w.r.Handle(t.Context(), &rec); !errors.Is(err, down) || sluice.IsPermanent(err) || len(w.Items("orders")) != 2 {
		t.Errorf("%v, %d", err, writes)
	}
	w.ReadFault = func() error { return down }
	if err := w.r.Handle(t.Context(), &rec); !errors.Is(err, down) {
		t.Error(err)
	}
	w.ReadFault = nil
	if err := w.r.Handle(t.Context(), &rec); err != nil || len(w.Items("orders")) != 1 {
		t.Error(err)
	}
}

func TestOrphansAreValidated(t *testing.T) {
	for want, o := range map[string]Orphans{
		`Orphans.Table is "x", want that of one of Counts`: {Table: "x"},
		"where a Count makes the parents":                  {Table: "made"},
		"Orphans.Transact is missing":                      {Table: "shops"},
	} {
		_, err := New(Config{
			Name: "n", Markers: "m", Once: newWorld().Once, Orphans: &o,
			Counts: []Count{{Table: "shops", Attribute: "a", Key: By("b")}, {Table: "made", Attribute: "a", Key: By("b"), Create: true}},
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A parent that is there is no reason for a transaction.
func TestChildOfAParentThatIsThere(t *testing.T) {
	w := newOrphans(t)
	w.put("shops", `{"shop":{"S":"a"}}`)
	w.put("orders", draft)
	w.transact = func() { t.Error("the child is no orphan") }
	if err := w.handle(1); err != nil {
		t.Error(err)
	}
	if err := w.handle(2); err != nil {
		t.Error(err)
	}
}
