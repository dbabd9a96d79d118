package rollup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/tabletest"
	"github.com/sluicehq/sluice/item"
)

// early is a world in which children may come before their parents: orders of
// shops, whose prices are summed, too.
type early struct {
	*tabletest.World
	t       *testing.T
	r       *Rollup
	handled []sluice.Record // from the first
	looking func(shop string)
}

func newEarly(t *testing.T) *early {
	w := &early{World: tabletest.NewWorld(time.Now()), t: t}
	w.Create("orders", "pk", "")
	w.Create("shops", "shop", "")
	w.Create("markers", "pk", "")
	var err error
	w.r, err = New(Config{
		Name: "orders", Markers: "markers", Once: w.Once, Get: w.Get, Now: w.Now,
		Counts: []Count{
			{Table: "shops", Attribute: "orders", Key: By("shop")},
			{Table: "shops", Attribute: "paid", Key: By("shop"), Of: "price"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *early) put(table, it string) {
	w.t.Helper()
	if err := w.Put(w.t.Context(), table, parse(it)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *early) order(pk, shop, price string) {
	w.t.Helper()
	w.put("orders", fmt.Sprintf(`{"pk":{"S":%q},"shop":{"S":%q},"price":{"N":%q}}`, pk, shop, price))
}

func (w *early) shop(id string) {
	w.t.Helper()
	w.put("shops", fmt.Sprintf(`{"shop":{"S":%q}}`, id))
}

func (w *early) remove(table, key string) {
	w.t.Helper()
	if err := w.Write(w.t.Context(), dynamo.Delete(table, parse(key))); err != nil {
		w.t.Fatal(err)
	}
}

// handle handles the records of the streams, each the given number of times.
func (w *early) handle(times int) {
	w.t.Helper()
	for _, rec := range w.Records() {
		if rec.Table != "orders" {
			continue
		}
		w.handled = append(w.handled, rec)
		for range times {
			w.again(rec)
		}
	}
}

func (w *early) again(rec sluice.Record) {
	w.t.Helper()
	if err := w.r.Handle(w.t.Context(), &rec); err != nil && !sluice.IsSkip(err) {
		w.t.Fatal(err)
	}
}

func (w *early) shops() string {
	var all []string
	for _, it := range w.Items("shops") {
		all = append(all, string(it.AppendJSON(nil, item.JSON{SortedKeys: true})))
	}
	return strings.Join(all, " ")
}

func (w *early) rows() (n int) {
	for _, it := range w.Items("markers") {
		if v, _ := it.Lookup("pk"); strings.HasPrefix(v.Str(), "orders#uncounted#") {
			n++
		}
	}
	return n
}

func (w *early) recount(attribute, of string) Recounted {
	w.t.Helper()
	children := func(_ context.Context, shop sluice.Item) iter.Seq2[sluice.Item, error] {
		return func(yield func(sluice.Item, error) bool) {
			id, _ := shop.Lookup("shop")
			if w.looking != nil {
				w.looking(id.Str())
			}
			for _, it := range w.Items("orders") {
				if v, _ := it.Lookup("shop"); v.Equal(id) && !yield(it, nil) {
					return
				}
			}
		}
	}
	done, err := Recount{
		Name: "orders", Markers: "markers", Table: "shops", Keys: []string{"shop"}, Attribute: attribute, Of: of,
		Get: w.Get, Transact: w.Transact, Children: children, Now: w.Now, MaxDeletes: 100,
	}.Run(w.t.Context(), seq(w.Items("shops")...))
	if err != nil {
		w.t.Fatal(err)
	}
	return done
}

// A child that came before its parent is not counted, and not subtracted.
func TestChildBeforeItsParent(t *testing.T) {
	for _, times := range []int{1, 2} {
		for _, tt := range []struct {
			name string
			do   func(w *early)
			want string
			rows int
		}{
			{"removed", func(w *early) { w.remove("orders", `{"pk":{"S":"1"}}`) }, `{"shop":"a"} {"shop":"b"}`, 0},
			{"removed beside one that counts", func(w *early) {
				w.order("2", "a", "7")
				w.remove("orders", `{"pk":{"S":"1"}}`)
			}, `{"orders":1,"paid":7,"shop":"a"} {"shop":"b"}`, 0},
			{"changed", func(w *early) { w.order("1", "a", "9") }, `{"shop":"a"} {"shop":"b"}`, 1},
			{"changed and removed", func(w *early) {
				w.order("1", "a", "9")
				w.handle(times)
				w.remove("orders", `{"pk":{"S":"1"}}`)
			}, `{"shop":"a"} {"shop":"b"}`, 0},
			{"moved", func(w *early) { w.order("1", "b", "5") }, `{"shop":"a"} {"orders":1,"paid":5,"shop":"b"}`, 0},
			{"moved there and back", func(w *early) {
				w.order("1", "b", "5")
				w.order("1", "a", "5")
			}, `{"orders":1,"paid":5,"shop":"a"} {"orders":0,"paid":0,"shop":"b"}`, 0},
			{"moved to where nothing is", func(w *early) { w.order("1", "c", "5") }, `{"shop":"a"} {"shop":"b"}`, 1},
			{"written anew", func(w *early) {
				w.remove("orders", `{"pk":{"S":"1"}}`)
				w.order("1", "a", "3")
			}, `{"orders":1,"paid":3,"shop":"a"} {"shop":"b"}`, 0},
			{"its parent is deleted and made again", func(w *early) {
				w.remove("shops", `{"shop":{"S":"a"}}`)
				w.shop("a")
				w.remove("orders", `{"pk":{"S":"1"}}`)
			}, `{"shop":"a"} {"shop":"b"}`, 0},
		} {
			synctest.Test(t, func(t *testing.T) {
				w := newEarly(t)
				w.order("1", "a", "5")
				w.handle(times)
				w.shop("a")
				w.shop("b")
				tt.do(w)
				w.handle(times)
				for _, rec := range w.handled { // a source that lost its position
					w.again(rec)
				}
				if got := w.shops(); got != tt.want || w.rows() != tt.rows {
					t.Errorf("%s: %s, want %s; %d rows, want %d", tt.name, got, tt.want, w.rows(), tt.rows)
				}
			})
		}
	}
}

// A recount counts such a child. From then on its end subtracts from the recounted
// number.
func TestRecountedChildOfALateParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEarly(t)
		w.order("1", "a", "5")
		w.order("2", "a", "6")
		w.handle(1)
		time.Sleep(time.Second)
		w.shop("a")
		if done := w.recount("orders", ""); done.Corrected != 1 || w.shops() != `{"orders":2,"shop":"a"}` {
			t.Fatalf("%+v %s", done, w.shops())
		}
		w.order("1", "a", "9") // its price is not counted still
		w.handle(2)
		w.remove("orders", `{"pk":{"S":"1"}}`)
		w.handle(2)
		if got := w.shops(); got != `{"orders":1,"shop":"a"}` || w.rows() != 1 {
			t.Errorf("%s, %d rows", got, w.rows())
		}
		w.recount("paid", "price")
		w.remove("orders", `{"pk":{"S":"2"}}`)
		w.handle(2)
		if got := w.shops(); got != `{"orders":0,"paid":0,"shop":"a"}` || w.rows() != 0 {
			t.Errorf("%s, %d rows", got, w.rows())
		}
	})
}

// Order 1 comes before its shop, and is not counted. Order 2 is counted, and the
// record of its end is lost. A recount finds the counter right: 1, for order 1. From
// then on order 1 counts.
func TestRecountThatFindsTheCounterRight(t *testing.T) {
	for _, crash := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newEarly(t)
			w.order("1", "a", "5")
			if once, n := w.r.c.Once, 0; crash { // after the row of the child is written
				w.r.c.Once = func(ctx context.Context, u dynamo.Unit) (dynamo.Applied, error) {
					if n++; n == 2 {
						return dynamo.Applied{}, errDown
					}
					return once(ctx, u)
				}
				rec := w.Records()[0]
				if err := w.r.Handle(t.Context(), &rec); !errors.Is(err, errDown) {
					t.Fatal(err)
				}
				w.again(rec)
			}
			w.handle(2)
			time.Sleep(time.Second)
			w.shop("a")
			w.order("2", "a", "5")
			w.handle(1)
			w.remove("orders", `{"pk":{"S":"2"}}`)
			w.Records() // lost
			begin := time.Now()
			for i, wait := range []time.Duration{time.Minute, 0} {
				if done := w.recount("orders", ""); done != (Recounted{Parents: 1, Right: 1}) || time.Since(begin) != time.Minute {
					t.Errorf("recount %d: %+v, after %v, want %v more", i, done, time.Since(begin), wait)
				}
			}
			w.remove("orders", `{"pk":{"S":"1"}}`)
			w.handle(2)
			if got := w.shops(); got != `{"orders":0,"paid":5,"shop":"a"}` {
				t.Errorf("crash %v: no order is left: %s", crash, got)
			}
		})
	}
}

// A counter is right by chance, since the record of a counted child's end is under
// way. It is not noted as counting the child that came before its shop.
func TestRecountThatFindsTheCounterRightForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEarly(t)
		w.order("1", "a", "5")
		w.handle(1)
		time.Sleep(time.Second)
		w.shop("a")
		w.order("2", "a", "5")
		w.handle(1)
		w.remove("orders", `{"pk":{"S":"2"}}`)
		time.AfterFunc(30*time.Second, func() { w.handle(1) })
		if done := w.recount("orders", ""); done != (Recounted{Parents: 1, Corrected: 1}) {
			t.Errorf("%+v", done)
		}
		w.remove("orders", `{"pk":{"S":"1"}}`)
		w.handle(1)
		if got := w.shops(); got != `{"orders":0,"paid":0,"shop":"a"}` {
			t.Errorf("no order is left: %s", got)
		}
	})
}

// A recount is no reason to subtract a child that came later, while its parent was
// not there.
func TestRecountBeforeTheChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEarly(t)
		w.put("shops", `{"shop":{"S":"a"},"orders":{"N":"-1"}}`)
		if done := w.recount("orders", ""); done.Corrected != 1 {
			t.Fatalf("%+v", done)
		}
		w.remove("shops", `{"shop":{"S":"a"}}`)
		time.Sleep(time.Second)
		w.order("1", "a", "5")
		w.handle(1)
		w.shop("a")
		w.remove("orders", `{"pk":{"S":"1"}}`)
		w.handle(1)
		if got := w.shops(); got != `{"shop":"a"}` {
			t.Errorf("%s", got)
		}
	})
}

// While the row cannot be read, the record fails: the child may count or not.
func TestRowCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEarly(t)
		w.shop("a")
		w.order("1", "a", "5")
		w.handle(1)
		w.remove("orders", `{"pk":{"S":"1"}}`)
		rec := slices.DeleteFunc(w.Records(), func(rec sluice.Record) bool { return rec.Table != "orders" })[0]
		w.ReadFault = func() error { return errDown }
		if err := w.r.Handle(t.Context(), &rec); !errors.Is(err, errDown) || sluice.IsPermanent(err) {
			t.Error(err)
		}
		w.ReadFault = nil
		w.again(rec)
		if got := w.shops(); got != `{"orders":0,"paid":0,"shop":"a"}` {
			t.Error(got)
		}
	})
}

// The end of a child that was not counted does not move the counter. When it ends
// between the look at its parent and the end of the recount, the recount sees it.
func TestUncountedChildEndsDuringARecount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEarly(t)
		w.order("o1", "a", "0")
		w.handle(1)
		w.put("shops", `{"shop":{"S":"a"},"orders":{"N":"5"}}`)
		w.put("shops", `{"shop":{"S":"b"},"orders":{"N":"5"}}`)
		looks := 0
		w.looking = func(shop string) {
			if shop != "b" {
				return
			}
			if looks++; looks == 2 {
				w.remove("orders", `{"pk":{"S":"o1"}}`)
				w.handle(1)
			}
		}
		w.order("o2", "b", "0")
		w.Records()
		if done := w.recount("orders", ""); done.Corrected != 2 || w.shops() != `{"orders":0,"shop":"a"} {"orders":1,"shop":"b"}` {
			t.Errorf("%+v, %s", done, w.shops())
		}
	})
}

// In any order of events, no counter is below 0. A counter has the children since its
// parent. A recount counts the rest.
func TestEarlySeeds(t *testing.T) {
	for seed := range uint64(25) {
		synctest.Test(t, func(t *testing.T) { earlySeed(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func earlySeed(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	w := newEarly(t)
	made := map[string]bool{}
	at, counts := map[string]string{}, map[string]bool{} // an order's shop, and whether it counts there
	for range 40 {
		time.Sleep(time.Millisecond)
		id := fmt.Sprint("o", rnd.IntN(5))
		switch n := rnd.IntN(12); {
		case n == 0:
			if shop := []string{"a", "b", "c"}[rnd.IntN(3)]; !made[shop] {
				made[shop] = true
				w.shop(shop)
			}
		case n == 1:
			w.recount("orders", "")
			for id := range at {
				counts[id] = made[at[id]]
			}
		case n < 5:
			if at[id] != "" {
				w.remove("orders", fmt.Sprintf(`{"pk":{"S":%q}}`, id))
			}
			delete(at, id)
		default:
			shop := []string{"a", "b", "c"}[rnd.IntN(3)]
			if at[id] != shop {
				counts[id] = made[shop]
			}
			at[id] = shop
			w.order(id, shop, "0")
		}
		w.handle(1 + rnd.IntN(2))
		if len(w.handled) > 0 && rnd.IntN(3) == 0 {
			for _, rec := range w.handled[rnd.IntN(len(w.handled)):] {
				w.again(rec)
			}
		}
		want := map[string]int64{}
		for id, shop := range at {
			if counts[id] {
				want[shop]++
			}
		}
		for _, it := range w.Items("shops") {
			shop, _ := it.Lookup("shop")
			v, _ := it.Lookup("orders")
			if n, _ := v.Int64(); n != want[shop.Str()] {
				t.Fatalf("shop %s has %d orders, want %d", shop.Str(), n, want[shop.Str()])
			}
		}
	}
}

// Ids of rows are the same for the same keys, and no others.
func TestRowID(t *testing.T) {
	one := rowID("n", "k", "t", parse(`{"a":{"S":"x"},"b":{"N":"1"}}`), "p", parse(`{"c":{"S":"y"}}`))
	if other := rowID("n", "k", "t", parse(` {"b":{"N":"1"}, "a":{"S":"\u0078"}}`), "p", parse(`{"c":{"S":"y"}}`)); other != one {
		t.Error("spelled otherwise, it is another")
	}
	seen := map[string]bool{one: true}
	for _, id := range []string{
		rowID("n", "k", "t", parse(`{"a":{"S":"x"},"b":{"S":"1"}}`), "p", parse(`{"c":{"S":"y"}}`)),
		rowID("n", "k", "t", parse(`{"a":{"S":"x"}}`), "p", parse(`{"b":{"N":"1"},"c":{"S":"y"}}`)),
		rowID("n", "k", "tp", parse(`{"a":{"S":"x"},"b":{"N":"1"}}`), "", parse(`{"c":{"S":"y"}}`)),
		rowID("n", "k", "t", item.Of(item.Binary("a", []byte("x")), item.Number("b", "1")), "p", parse(`{"c":{"S":"y"}}`)),
	} {
		if seen[id] {
			t.Errorf("%s twice", id)
		}
		seen[id] = true
	}
}
