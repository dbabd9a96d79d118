package rollup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// shop is a parent with its orders in memory. The counter follows the orders by
// a stream that lags.
type shop struct {
	mu      sync.Mutex
	counter *int64 // nil: the parent lacks it
	gone    bool
	orders  map[string]int64 // prices
	pages   func()           // called between two children that are read
	writes  []dynamo.Op
}

func num(n int64) *int64 { return &n }

// at does something to the shop later.
func (s *shop) at(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		do()
	})
}

// wait waits, and reads the counter then.
func (s *shop) wait(d time.Duration) int64 {
	time.Sleep(d)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.counter
}

func (s *shop) Get(_ context.Context, table string, key sluice.Item) (sluice.Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if table == "markers" {
		return sluice.Item{}, nil
	}
	if got := place(table, key); got != shopA {
		return sluice.Item{}, errors.New("asked for " + got)
	}
	switch {
	case s.gone:
		return sluice.Item{}, nil
	case s.counter == nil:
		return key, nil
	}
	return key.With(item.Number("orders", fmt.Sprint(*s.counter))), nil
}

func (s *shop) Children(_ context.Context, _ sluice.Item) iter.Seq2[sluice.Item, error] {
	return func(yield func(sluice.Item, error) bool) {
		for n := range 8 { // in order, each as it is when its turn comes
			id := fmt.Sprint("o-", n)
			s.mu.Lock()
			price, ok := s.orders[id]
			pages := s.pages
			s.mu.Unlock()
			if ok {
				if !yield(item.Of(item.String("shop", "a"), item.String("order", id), item.Number("price", fmt.Sprint(price))), nil) {
					return
				}
			}
			if pages != nil {
				pages()
			}
		}
	}
}

func (s *shop) Transact(_ context.Context, ops ...dynamo.Op) error {
	op := ops[0]
	if len(ops) != 2 || ops[1].Table != "markers" {
		return fmt.Errorf("%+v", ops)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, op)
	old, had := op.Values[":old"].(int64)
	switch {
	case op.Table != "shops" || op.Kind != dynamo.UpdateOp || op.Update != "SET #n = :new" || op.Names["#n"] != "orders":
		return fmt.Errorf("op %+v", op)
	case had && op.Condition != "#n = :old":
		return fmt.Errorf("condition %q", op.Condition)
	case !had && (op.Condition != "attribute_not_exists(#n) AND attribute_exists(#k)" || op.Names["#k"] != "shop"):
		return fmt.Errorf("condition %q", op.Condition)
	}
	if s.gone || (s.counter != nil) != had || had && *s.counter != old {
		return &dynamo.ConditionError{Failed: []int{0}, Tables: []string{"shops"}}
	}
	s.counter = num(op.Values[":new"].(int64))
	return nil
}

// apply has the effect of a record of the stream.
func (s *shop) apply(n int64) {
	if !s.gone {
		if s.counter == nil {
			s.counter = num(0)
		}
		*s.counter += n
	}
}

func (s *shop) recount(edit ...func(*Recount)) Recount {
	r := Recount{Table: "shops", Keys: []string{"shop"}, Attribute: "orders", Children: s.Children, Get: s.Get, Transact: s.Transact, Name: "orders", Markers: "markers"}
	for _, e := range edit {
		e(&r)
	}
	return r
}

func (s *shop) run(t *testing.T, edit ...func(*Recount)) (Recounted, string) {
	t.Helper()
	var found []string
	r := s.recount(append([]func(*Recount){func(r *Recount) {
		r.Found = func(c Correction) {
			found = append(found, fmt.Sprintf("%s %s %d to %d busy %v", place(c.Table, c.Key), c.Attribute, c.Old, c.New, c.Busy))
		}
	}}, edit...)...)
	done, err := r.Run(t.Context(), seq(parse(`{"name":{"S":"x"},"shop":{"S":"a"}}`)))
	if err != nil {
		t.Fatal(err)
	}
	return done, strings.Join(found, "; ")
}

func prices(ids ...string) map[string]int64 {
	m := map[string]int64{}
	for _, id := range ids {
		m[id] = 5
	}
	return m
}

func TestRecountCorrects(t *testing.T) {
	for _, tt := range []struct {
		name   string
		shop   *shop
		edit   func(*Recount)
		found  string
		done   Recounted
		writes int
		after  string
	}{
		{"right", &shop{counter: num(2), orders: prices("o-1", "o-2")}, nil, "", Recounted{Parents: 1, Right: 1}, 0, "2"},
		{"absent and right", &shop{}, nil, "", Recounted{Parents: 1, Right: 1}, 0, "none"},
		{"too high", &shop{counter: num(7), orders: prices("o-1", "o-2")}, nil, shopA + " orders 7 to 2 busy false", Recounted{Parents: 1, Corrected: 1}, 1, "2"},
		{"below zero", &shop{counter: num(-1)}, nil, shopA + " orders -1 to 0 busy false", Recounted{Parents: 1, Corrected: 1}, 1, "0"},
		{"absent", &shop{orders: prices("o-1")}, nil, shopA + " orders 0 to 1 busy false", Recounted{Parents: 1, Corrected: 1}, 1, "1"},
		{"a sum", &shop{counter: num(1), orders: map[string]int64{"o-1": 4, "o-2": -1}}, func(r *Recount) { r.Of = "price" }, shopA + " orders 1 to 3 busy false", Recounted{Parents: 1, Corrected: 1}, 1, "3"},
		{"some", &shop{counter: num(2), orders: map[string]int64{"o-1": 4, "o-2": -1}}, func(r *Recount) {
			r.When = func(it sluice.Item) bool { v, _ := it.Lookup("price"); n, _ := v.Int64(); return n > 0 }
		}, shopA + " orders 2 to 1 busy false", Recounted{Parents: 1, Corrected: 1}, 1, "1"},
		{"dry run", &shop{counter: num(7), orders: prices("o-1")}, func(r *Recount) { r.DryRun, r.Transact, r.Name, r.Markers = true, nil, "", "" }, shopA + " orders 7 to 1 busy false", Recounted{Parents: 1, Corrected: 1}, 0, "7"},
		{"gone", &shop{gone: true, orders: prices("o-1")}, nil, "", Recounted{Parents: 1, Gone: 1}, 0, "none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if tt.edit == nil {
					tt.edit = func(*Recount) {}
				}
				done, found := tt.shop.run(t, tt.edit)
				after := "none"
				if tt.shop.counter != nil {
					after = fmt.Sprint(*tt.shop.counter)
				}
				if done != tt.done || found != tt.found || len(tt.shop.writes) != tt.writes || after != tt.after {
					t.Errorf("%+v, found %q, %d writes, counter %s", done, found, len(tt.shop.writes), after)
				}
			})
		})
	}
}

// Events during a recount of a parent, at times after its start. The recount looks at 0
// s, 60 s, 120 s and so on.
func TestRecountWhileRecordsAreUnderWay(t *testing.T) {
	type event struct {
		at time.Duration
		do func(*shop)
	}
	add := func(n int64) func(*shop) { return func(s *shop) { s.apply(n) } }
	insert := func(id string) func(*shop) { return func(s *shop) { s.orders[id] = 5 } }
	remove := func(id string) func(*shop) { return func(s *shop) { delete(s.orders, id) } }
	for _, tt := range []struct {
		name    string
		counter int64
		events  []event
		found   string
		done    Recounted
		after   int64 // once everything has arrived
	}{
		{"a record arrives, nothing is wrong", 1, []event{{30 * time.Second, add(1)}}, "", Recounted{Parents: 1, Settled: 1}, 2},
		{"a record arrives, and the counter is wrong", 8, []event{{30 * time.Second, add(1)}}, shopA + " orders 9 to 2 busy false", Recounted{Parents: 1, Corrected: 1}, 2},
		{"an order is written, and counted at once", 8, []event{{30 * time.Second, insert("o-3")}, {31 * time.Second, add(1)}}, shopA + " orders 9 to 3 busy false", Recounted{Parents: 1, Corrected: 1}, 3},
		{"an order is written, and counted after the second look", 8, []event{{50 * time.Second, insert("o-3")}, {70 * time.Second, add(1)}}, shopA + " orders 9 to 3 busy false", Recounted{Parents: 1, Corrected: 1}, 3},
		{"an order is written in place of another", 8, []event{{50 * time.Second, insert("o-3")}, {51 * time.Second, remove("o-1")}, {52 * time.Second, add(-1)}, {62 * time.Second, add(1)}}, shopA + " orders 8 to 2 busy false", Recounted{Parents: 1, Corrected: 1}, 2},
		{"an order is dearer", 8, []event{{50 * time.Second, func(s *shop) { s.orders["o-1"] = 6 }}}, shopA + " orders 8 to 2 busy false", Recounted{Parents: 1, Corrected: 1}, 2},
		{"the shop goes", 8, []event{{30 * time.Second, func(s *shop) { s.gone = true }}}, "", Recounted{Parents: 1, Gone: 1}, 0},
		{"it never rests", 8, []event{
			{50 * time.Second, insert("o-3")}, {110 * time.Second, insert("o-4")}, {170 * time.Second, insert("o-5")},
			{230 * time.Second, insert("o-6")}, {290 * time.Second, insert("o-7")}, {299 * time.Second, add(5)},
		}, shopA + " orders 13 to 7 busy true", Recounted{Parents: 1, Busy: 1}, 13},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shop{counter: num(tt.counter), orders: prices("o-1", "o-2")}
				for _, e := range tt.events {
					s.at(e.at, func() { e.do(s) })
				}
				done, found := s.run(t)
				after := s.wait(time.Hour)
				if done != tt.done || found != tt.found || !s.gone && after != tt.after {
					t.Errorf("%+v, found %q, counter %d", done, found, after)
				}
			})
		})
	}
}

// A waiting recount reports how many counters it waits for. A stopped recount reports
// the open ones.
func TestRecountTellsThatItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{counter: num(8), orders: prices("o-1", "o-2")}
		s.at(30*time.Second, func() { s.orders["o-3"] = 5; s.apply(1) })
		begin := time.Now()
		var told []string
		_, found := s.run(t, func(r *Recount) {
			r.Settling = func(counters int) { told = append(told, fmt.Sprint(counters, " at ", time.Since(begin))) }
		})
		if want := []string{"1 at 0s", "1 at 1m0s"}; !slices.Equal(told, want) || found != shopA+" orders 9 to 3 busy false" {
			t.Errorf("%q, want %q; %s", told, want, found)
		}

		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		s.counter = num(8)
		done, err := s.recount().Run(ctx, seq(parse(`{"shop":{"S":"a"}}`)))
		if !errors.Is(err, context.Canceled) || done != (Recounted{Parents: 1}) || done.Open() != 1 {
			t.Errorf("%+v, %v", done, err)
		}
		unread := s.recount(func(r *Recount) {
			r.Get = func(context.Context, string, sluice.Item) (sluice.Item, error) { return sluice.Item{}, errDown }
		})
		if done, err := unread.Run(t.Context(), seq(parse(`{"shop":{"S":"a"}}`))); !errors.Is(err, errDown) || done.Open() != 0 {
			t.Errorf("what cannot be read: %+v, %v", done, err)
		}
	})
}

// A record that arrives between the second look and the write fails the write.
func TestRecountWritesOnConditionOfWhatItSaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{counter: num(1), orders: prices("o-1", "o-2")}
		s.at(time.Minute-time.Second, func() {
			s.pages = func() { // while it is read, after the counter was
				s.mu.Lock()
				defer s.mu.Unlock()
				if len(s.orders) == 2 {
					s.orders["o-0"] = 5 // behind the reader: not counted
					s.apply(1)
				}
			}
		})
		done, found := s.run(t)
		if done.Corrected != 1 || found != shopA+" orders 2 to 3 busy false" || *s.counter != 3 || len(s.writes) != 2 {
			t.Errorf("%+v, %q, %d writes, counter %d", done, found, len(s.writes), *s.counter)
		}
	})
}

// The documented limit: a record that is under way for longer than Settle is
// counted by the recount, and counts once more when it arrives. The next
// recount finds it.
func TestRecountIsWrongWhenTheLagIsLongerThanSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{counter: num(1), orders: prices("o-1", "o-2")} // o-2 was just written
		s.at(10*time.Minute, func() { s.apply(1) })
		if _, found := s.run(t); found != shopA+" orders 1 to 2 busy false" {
			t.Error(found)
		}
		if n := s.wait(time.Hour); n != 3 {
			t.Errorf("counter %d", n)
		}
		if _, found := s.run(t, func(r *Recount) { r.Settle = 11 * time.Minute }); found != shopA+" orders 3 to 2 busy false" {
			t.Error(found)
		}
	})
}

// Random writers, a stream with less lag than Settle, and recounts meanwhile. When all
// records are handled, the counter is right or was reported as busy. No order is
// written twice.
func TestRecountSeeds(t *testing.T) {
	corrected, busy := 0, 0
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 2))
			s := &shop{counter: num(int64(rnd.IntN(5))), orders: map[string]int64{}}
			for range rnd.IntN(4) {
				s.orders[fmt.Sprint("o-", rnd.IntN(8))] = 5
			}
			ever := map[string]bool{}
			for id := range s.orders {
				ever[id] = true
			}
			for range rnd.IntN(8) {
				id := fmt.Sprint("o-", rnd.IntN(8))
				lag := time.Duration(rnd.IntN(59_000)) * time.Millisecond
				s.at(time.Duration(rnd.IntN(300_000))*time.Millisecond, func() {
					n := int64(1)
					if _, there := s.orders[id]; there {
						n = -1
						delete(s.orders, id)
					} else if ever[id] {
						return
					} else {
						ever[id] = true
						s.orders[id] = 5
					}
					s.at(lag, func() { s.apply(n) })
				})
			}
			page := time.Duration(rnd.IntN(500)) * time.Millisecond
			s.mu.Lock()
			s.pages = func() { time.Sleep(page) } // a query takes its time
			s.mu.Unlock()
			time.Sleep(time.Duration(rnd.IntN(200_000)) * time.Millisecond)
			done, found := s.run(t, func(r *Recount) { r.TrustTables = true })
			counter := s.wait(time.Hour)
			corrected, busy = corrected+done.Corrected, busy+done.Busy
			// Right at the first look can hide a drift while records are under way.
			if counter != int64(len(s.orders)) && done.Right+done.Settled+done.Busy == 0 {
				t.Errorf("seed %d: counter %d of %d orders; %+v, %s", seed, counter, len(s.orders), done, found)
			}
		})
	}
	if corrected < 100 || busy > 100 {
		t.Errorf("%d corrected, %d busy: the seeds try too little", corrected, busy)
	}
}

func TestRecountManyParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counters := map[string]int64{}
		parents := func(yield func(sluice.Item, error) bool) {
			for n := range 2*batchSize + 1 {
				if !yield(item.Of(item.Number("id", fmt.Sprint(n))), nil) {
					return
				}
			}
		}
		r := Recount{
			Table: "ps", Keys: []string{"id"}, Attribute: "n",
			Get: func(_ context.Context, _ string, key sluice.Item) (sluice.Item, error) {
				return key.With(item.Number("n", fmt.Sprint(counters[string(key.Raw())]))), nil
			},
			Children: func(context.Context, sluice.Item) iter.Seq2[sluice.Item, error] { return seq(parse(`{}`)) },
			Name:     "orders", Markers: "markers",
			Transact: func(_ context.Context, ops ...dynamo.Op) error {
				op := ops[0]
				counters[string(op.Key.Raw())] = op.Values[":new"].(int64)
				return nil
			},
		}
		begin := time.Now()
		done, err := r.Run(t.Context(), parents)
		if want := (Recounted{Parents: 2*batchSize + 1, Corrected: 2*batchSize + 1}); err != nil || done != want || len(counters) != want.Parents {
			t.Errorf("%+v, %v, %d written", done, err, len(counters))
		}
		if took := time.Since(begin); took != 3*time.Minute {
			t.Errorf("it waits %v", took)
		}
		if done, err = r.Run(t.Context(), parents); err != nil || done.Right != done.Parents || done.Parents == 0 {
			t.Errorf("again: %+v, %v", done, err)
		}
	})
}

func TestRecountFails(t *testing.T) {
	good := func() *shop { return &shop{counter: num(7), orders: prices("o-1")} }
	parent := parse(`{"shop":{"S":"a"}}`)
	for _, tt := range []struct {
		name    string
		edit    func(*Recount)
		parents iter.Seq2[sluice.Item, error]
		want    string
	}{
		{"nothing is set", func(r *Recount) { *r = Recount{Settle: -1, Attempts: -1} }, seq(parent), "Table is missing\nKeys is missing\nAttribute is missing\nChildren is missing\nGet is missing\nTransact is missing\nName is missing\nMarkers is missing\nSettle is -1ns, want more than 0\nAttempts is -1"},
		{"no parents", nil, func(yield func(sluice.Item, error) bool) { yield(sluice.Item{}, errDown) }, "reading the parents of table shops: down"},
		{"no key", nil, seq(parse(`{"x":{"S":"a"}}`)), `key attributes ["shop"] of table shops`},
		{"no read", func(r *Recount) {
			r.Get = func(context.Context, string, sluice.Item) (sluice.Item, error) { return sluice.Item{}, errDown }
		}, seq(parent), `reading {"shop":{"S":"a"}} of table shops: down`},
		{"no children", func(r *Recount) {
			r.Children = func(context.Context, sluice.Item) iter.Seq2[sluice.Item, error] {
				return func(yield func(sluice.Item, error) bool) { yield(sluice.Item{}, errDown) }
			}
		}, seq(parent), `reading the children of {"shop":{"S":"a"}} of table shops: down`},
		{"no write", func(r *Recount) { r.Transact = func(context.Context, ...dynamo.Op) error { return errDown } }, seq(parent), `setting "orders" of {"shop":{"S":"a"}} of table shops from 7 to 1: down`},
		{"no sum", func(r *Recount) { r.Of = "order" }, seq(parent), `attribute "order" is no whole number`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := good().recount()
				if tt.edit != nil {
					tt.edit(&r)
				}
				if _, err := r.Run(t.Context(), tt.parents); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v\nwant %s", err, tt.want)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // while it waits
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		if _, err := good().recount().Run(ctx, seq(parent)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
