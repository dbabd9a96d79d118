package dynamodb

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/effect/dynamo"
)

// A unit that touches items of two transactions has no place in either.
func TestOnceKeepsTransactionsApart(t *testing.T) {
	st := newService(t, 1, faults{}).store(Options{})
	newUnit := func(n int, adds ...dynamo.Add) *unit {
		u, err := st.newUnit(dynamo.Unit{Marker: marker("%d", n), Adds: adds})
		if err != nil {
			t.Fatal(err)
		}
		u.nth = uint64(n)
		return u
	}
	var units []*unit
	for i := range 60 { // 50 of them fill a transaction
		a := addTo("", 1)
		a.Key = pk("c%d", i)
		units = append(units, newUnit(i, a))
	}
	both := newUnit(60, addTo("c55", 1), addTo("c3", 1))
	ts, _ := pack(append(units, both), map[ref]*step{})
	if len(ts) != 2 || len(ts[0].units) != 50 || len(ts[1].units) != 10 || !both.again {
		t.Errorf("%d transactions, of them the last has %d units; the one of both goes again: %v", len(ts), len(ts[len(ts)-1].units), both.again)
	}
}

// If two units cannot share a transaction, the older unit goes first.
func TestOnceSendsTheOldestFirst(t *testing.T) {
	st := newService(t, 1, faults{}).store(Options{})
	st.once.send = func(context.Context, *dynamodb.TransactWriteItemsInput) error { return nil }
	op := dynamo.Update("things", pk("a"), "SET #s = :s").Name("#s", "s").Value(":s", "x")
	var units []*unit
	for i := range 2 {
		u, err := st.newUnit(dynamo.Unit{Marker: marker("%d", i), Ops: []dynamo.Op{op}})
		if err != nil {
			t.Fatal(err)
		}
		u.nth = uint64(2 - i)
		units = append(units, u)
	}
	younger, older := units[0], units[1]
	st.once.commit(t.Context(), units)
	if <-older.at.ended; !older.sent || younger.sent {
		t.Errorf("the older one is sent: %v, the younger one: %v", older.sent, younger.sent)
	}
}

// An Add with Create has no condition: a failed condition drops nothing of it.
func TestOnceDropsNothingThatIsCreated(t *testing.T) {
	s := newService(t, 1, faults{})
	s.answer = func(n int, _ *dynamodb.TransactWriteItemsInput) error {
		if n == 1 {
			return cancelled("None", "ConditionalCheckFailed")
		}
		return nil
	}
	a := addTo("a", 1)
	a.Create = true
	got, err := s.store(Options{Backoff: 1}).Once(t.Context(), dynamo.Unit{Marker: marker("1"), Adds: []dynamo.Add{a}})
	if err != nil || got.Dropped != nil || s.items["counters/a"]["n"] != "1" {
		t.Errorf("%+v %v, counted %q", got, err, s.items["counters/a"]["n"])
	}
}
