package dynamodb

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// An Add that is asked for once its item is there is not dropped because
// another one, which is still under way, has found the item missing.
func TestOnceDropsOnlyWhatWasAskedForBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		st := s.store(Options{})
		st.once.send = func(ctx context.Context, in *dynamodb.TransactWriteItemsInput) error {
			err := s.send(ctx, in)
			time.Sleep(50 * time.Millisecond) // the answer is on its way
			return err
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			got, err := st.Once(t.Context(), dynamo.Unit{Marker: marker("1"), Adds: []dynamo.Add{addTo("a", 1)}})
			if err != nil || len(got.Dropped) != 1 {
				t.Error(got, err)
			}
		})
		time.Sleep(20 * time.Millisecond)
		s.mu.Lock()
		s.items["counters/a"] = map[string]string{"pk": "a"}
		s.mu.Unlock()
		got, err := st.Once(t.Context(), dynamo.Unit{Marker: marker("2"), Adds: []dynamo.Add{addTo("a", 1)}})
		if err != nil || got.Dropped != nil {
			t.Error(got, err)
		}
		wg.Wait()
		if n := s.items["counters/a"]["n"]; n != "1" {
			t.Errorf("counted %q", n)
		}
	})
}

// Markers may stand beside each other in one partition.
func TestOnceTellsMarkersOfOnePartitionApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		st := s.store(Options{})
		put := map[string]bool{}
		st.once.send = func(_ context.Context, in *dynamodb.TransactWriteItemsInput) error {
			for _, step := range in.TransactItems {
				put[plain(step.Put.Item["sk"])] = true
			}
			time.Sleep(10 * time.Millisecond)
			return nil
		}
		in := func(sk string) dynamo.Unit {
			return dynamo.Unit{Marker: dynamo.Marker{Table: "orders", Key: "pk", Item: item.Of(item.String("pk", "o"), item.String("sk", sk))}}
		}
		for i, r := range together(t, st, in("1"), in("2")) {
			if r.err != nil || r.applied.Before {
				t.Errorf("unit %d: %+v", i, r)
			}
		}
		if !put["1"] || !put["2"] {
			t.Errorf("put: %v", put)
		}
	})
}

// Tables of two accounts may have the same name.
func TestOnceTellsTablesOfTwoAccountsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		var units []dynamo.Unit
		tables := []string{"arn:aws:dynamodb:us-east-1:1:table/c", "arn:aws:dynamodb:us-east-1:2:table/c"}
		for _, table := range tables {
			m := marker("m")
			m.Table = table
			units = append(units, dynamo.Unit{Marker: m, Adds: []dynamo.Add{{Table: table, Key: pk("a"), By: map[string]int64{"n": 1}, Create: true}}})
		}
		for i, r := range together(t, s.store(Options{}), units...) {
			if r.err != nil || r.applied.Before {
				t.Errorf("unit %d: %+v", i, r)
			}
		}
		for _, table := range tables {
			if n := s.items[table+"/a"]["n"]; n != "1" {
				t.Errorf("%s: counted %q", table, n)
			}
		}
	})
}

// Neither are they taken for one within a unit.
func TestOnceTellsTablesOfAUnitApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		tables := []string{"arn:aws:dynamodb:us-east-1:1:table/c", "arn:aws:dynamodb:us-east-1:2:table/c"}
		m := marker("a") // even the marker is alike
		m.Table = "c"
		u := dynamo.Unit{Marker: m}
		for i, table := range tables {
			u.Adds = append(u.Adds, dynamo.Add{Table: table, Key: pk("a"), By: map[string]int64{"n": int64(i + 1)}, Create: true})
		}
		if got, err := s.store(Options{}).Once(t.Context(), u); err != nil || got.Before {
			t.Error(got, err)
		}
		for i, table := range tables {
			if n := s.items[table+"/a"]["n"]; n != fmt.Sprint(i+1) {
				t.Errorf("%s: counted %q", table, n)
			}
		}
	})
}

// If the key of a put item is unknown, DynamoDB finds out whether a transaction touches
// an item twice.
func TestOnceDoesNotGuessKeys(t *testing.T) {
	put := func(sk string) dynamo.Op {
		return dynamo.Put("things", item.Of(item.String("pk", "a"), item.String("sk", sk)))
	}
	twice := dynamo.Unit{Marker: marker("m"), Ops: []dynamo.Op{put("1"), put("1")}}
	unknown, known := newService(t, 1, faults{}).store(Options{}), newService(t, 1, faults{}).store(Options{Keys: map[string][]string{"things": {"pk", "sk"}}})
	if u, err := unknown.newUnit(twice); err != nil || !u.alone {
		t.Error(u, err)
	}
	if _, err := known.newUnit(twice); err == nil || !strings.Contains(err.Error(), "is touched twice") {
		t.Error(err)
	}
	u, err := known.newUnit(dynamo.Unit{Marker: marker("m"), Ops: []dynamo.Op{put("1"), put("2")}})
	if err != nil {
		t.Fatal(err)
	}
	if ts, _ := pack([]*unit{u}, map[ref]*step{}); u.alone || len(ts) != 1 || len(ts[0].steps) != 3 {
		t.Errorf("alone: %v, %d transactions", u.alone, len(ts))
	}
}

// A unit's error never reaches another unit of the same request, also when the time
// ends with the answer. A permanent error would park the other's record.
func TestOnceThatRanOutOfTimeIsNotBlamedForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		st := s.store(Options{Timeout: 100 * time.Millisecond})
		st.once.send = func(ctx context.Context, in *dynamodb.TransactWriteItemsInput) error {
			time.Sleep(200 * time.Millisecond)
			return s.send(ctx, in)
		}
		bad := dynamo.Unit{Marker: marker("bad"), Ops: []dynamo.Op{dynamo.Update("states", pk("a"), "SET !")}}
		good := dynamo.Unit{Marker: marker("good"), Ops: []dynamo.Op{dynamo.Update("states", pk("b"), "SET #s = :s").Name("#s", "s").Value(":s", "1")}}
		results := together(t, st, bad, good)
		if len(s.steps) != 1 || s.steps[0] != 4 {
			t.Fatalf("requests of %v operations, want one of both units", s.steps)
		}
		if err := results[1].err; err == nil || sluice.IsPermanent(err) {
			t.Errorf("the unit that is well: %v, want an error that may pass", err)
		}
	})
}
