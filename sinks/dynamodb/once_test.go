package dynamodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
)

func addTo(key string, by int64) dynamo.Add {
	return dynamo.Add{Table: "counters", Key: pk("%s", key), By: map[string]int64{"n": by}}
}

type result struct {
	applied dynamo.Applied
	err     error
}

// together applies units at the same time.
func together(t *testing.T, st *Store, units ...dynamo.Unit) []result {
	results := make([]result, len(units))
	var wg sync.WaitGroup
	for i, u := range units {
		wg.Go(func() { results[i].applied, results[i].err = st.Once(t.Context(), u) })
		synctest.Wait() // so that they come in this order
	}
	wg.Wait()
	return results
}

func cancelled(codes ...string) error {
	reasons := make([]types.CancellationReason, len(codes))
	for i, c := range codes {
		reasons[i].Code = new(c)
	}
	return &types.TransactionCanceledException{CancellationReasons: reasons}
}

// An increment that is delivered twice is counted once.
func TestIncrementsAreCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		s.items["counters/a"] = map[string]string{"pk": "a"}
		st := s.store(Options{})
		u := dynamo.Unit{Marker: marker("e1"), Adds: []dynamo.Add{addTo("a", 2)}}
		for i, r := range append(together(t, st, u, u), together(t, st, u)...) {
			if r.err != nil || r.applied.Before != (i > 0) {
				t.Errorf("delivery %d: %+v", i, r)
			}
		}
		if got := s.items["counters/a"]["n"]; got != "2" {
			t.Errorf("counted %s", got)
		}
		if s.requests != 2 {
			t.Errorf("%d requests: of two at the same time only one is to be sent", s.requests)
		}
	})
}

// A lost answer is no error, and counts once.
func TestOnceAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{lost: 1})
		s.items["counters/a"] = map[string]string{"pk": "a"}
		got := together(t, s.store(Options{}), dynamo.Unit{Marker: marker("1"), Adds: []dynamo.Add{addTo("a", 1)}}, dynamo.Unit{Marker: marker("2"), Adds: []dynamo.Add{addTo("a", 1)}})
		for i, r := range got {
			if r.err != nil || !r.applied.Before {
				t.Errorf("unit %d: %+v", i, r)
			}
		}
		if n := s.items["counters/a"]["n"]; n != "2" || s.done != 1 {
			t.Errorf("counted %s in %d transactions", n, s.done)
		}
	})
}

func TestOnceShares(t *testing.T) {
	for _, c := range []struct {
		name  string
		units []dynamo.Unit
		steps []int
	}{
		{"one counter", []dynamo.Unit{{Adds: []dynamo.Add{addTo("a", 1)}}, {Adds: []dynamo.Add{addTo("a", 2)}}, {Adds: []dynamo.Add{addTo("a", -5)}}}, []int{4}},
		{"two tables", []dynamo.Unit{{Adds: []dynamo.Add{addTo("a", 1)}}, {Adds: []dynamo.Add{{Table: "t", Key: pk("a"), By: map[string]int64{"n": 1}, Create: true}}}}, []int{4}},
		{"a table and its ARN", []dynamo.Unit{{Adds: []dynamo.Add{addTo("a", 1)}}, {Adds: []dynamo.Add{{Table: "arn:aws:dynamodb:us-east-1:1:table/counters", Key: pk("a"), By: map[string]int64{"n": 1}, Create: true}}}}, []int{2, 2}},
		{"made and not made", []dynamo.Unit{{Adds: []dynamo.Add{addTo("a", 1)}}, {Adds: []dynamo.Add{{Table: "counters", Key: pk("a"), By: map[string]int64{"n": 1}, Create: true}}}}, []int{2, 2}},
		{"a sum that would wrap", []dynamo.Unit{{Adds: []dynamo.Add{addTo("a", math.MaxInt64)}}, {Adds: []dynamo.Add{addTo("a", 1)}}}, []int{2, 2}},
		{"a sum that would wrap below", []dynamo.Unit{{Adds: []dynamo.Add{addTo("a", math.MinInt64)}}, {Adds: []dynamo.Add{addTo("a", -1)}}}, []int{2, 2}},
		{"an Op on what another adds to", []dynamo.Unit{{Adds: []dynamo.Add{addTo("a", 1)}}, {Ops: []dynamo.Op{dynamo.Update("counters", pk("a"), "SET #s = :s").Name("#s", "s").Value(":s", "x")}}}, []int{2, 2}},
		{"Ops on two items", []dynamo.Unit{{Adds: []dynamo.Add{addTo("a", 1)}}, {Ops: []dynamo.Op{dynamo.Update("counters", pk("b"), "SET #s = :s").Name("#s", "s").Value(":s", "x")}}}, []int{4}},
		{"a Put to a table whose key is not known", []dynamo.Unit{{Adds: []dynamo.Add{addTo("a", 1)}}, {Ops: []dynamo.Op{dynamo.Put("things", pk("a"))}}}, []int{2, 2}},
		{"a Put to a table whose key is known", []dynamo.Unit{{Adds: []dynamo.Add{addTo("a", 1)}}, {Ops: []dynamo.Op{dynamo.Put("counters", pk("b"))}}}, []int{4}},
		{"a Put on what another adds to", []dynamo.Unit{{Adds: []dynamo.Add{addTo("a", 1)}}, {Ops: []dynamo.Op{dynamo.Put("counters", pk("a"))}}}, []int{2, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, 1, faults{})
				for _, key := range []string{"a", "b"} {
					s.items["counters/"+key] = map[string]string{"pk": key}
				}
				for i := range c.units {
					c.units[i].Marker = marker("m%d", i)
				}
				for i, r := range together(t, s.store(Options{Keys: map[string][]string{"counters": {"pk"}}}), c.units...) {
					if r.err != nil || r.applied.Before || r.applied.Dropped != nil {
						t.Errorf("unit %d: %+v", i, r)
					}
				}
				if !slices.Equal(s.steps, c.steps) {
					t.Errorf("transactions of %v operations, want %v", s.steps, c.steps)
				}
			})
		})
	}
}

// Transactions keep the limits of 100 operations and 4 MB, and hot counters do
// not make many small ones.
func TestOnceFillsTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		st := s.store(Options{})
		var wg sync.WaitGroup
		for w := range 64 {
			wg.Go(func() {
				for i := range 20 {
					a := addTo(fmt.Sprint((w*w+i)%30), 1)
					a.Create = true
					if _, err := st.Once(t.Context(), dynamo.Unit{Marker: marker("%d-%d", w, i), Adds: []dynamo.Add{a}}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if s.requests > 40 { // 20 at best
			t.Errorf("%d transactions for 20 rounds of 64 units: %v", s.requests, s.steps)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		large := strings.Repeat("x", 300_000)
		var units []dynamo.Unit
		for i := range 30 {
			units = append(units, dynamo.Unit{Marker: marker("%d", i), Ops: []dynamo.Op{
				dynamo.Update("things", pk("%d", i), "SET #s = :s").Name("#s", "s").Value(":s", large)}})
		}
		for _, r := range together(t, s.store(Options{}), units...) {
			if r.err != nil {
				t.Error(r.err)
			}
		}
		if slices.Sort(s.steps); !slices.Equal(s.steps, []int{8, 26, 26}) {
			t.Errorf("transactions of %v operations", s.steps)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		var units []dynamo.Unit
		for i := range 40 {
			u := dynamo.Unit{Marker: marker("%d", i)}
			for k := range 3 {
				u.Adds = append(u.Adds, dynamo.Add{Table: "counters", Key: pk("%d-%d", i, k), By: map[string]int64{"n": 1}, Create: true})
			}
			units = append(units, u)
		}
		for _, r := range together(t, s.store(Options{}), units...) {
			if r.err != nil {
				t.Error(r.err)
			}
		}
		if slices.Sort(s.steps); !slices.Equal(s.steps, []int{60, 100}) {
			t.Errorf("transactions of %v operations", s.steps)
		}
	})
}

// Each reason of a cancelled transaction. The units are: e0 adds to a, e1 adds
// to a and b, e2 has an Op. The steps are: the marker of e0, a, the marker of
// e1, b, the marker of e2, the Op.
func TestCancellationReasons(t *testing.T) {
	const n, unmet, conflict, invalid = "None", "ConditionalCheckFailed", "TransactionConflict", "ValidationError"
	type want struct {
		before    bool
		dropped   string
		unmet     bool
		permanent bool
		failed    bool
	}
	ok := want{}
	for _, c := range []struct {
		name   string
		codes  []string // of the first transaction
		always bool     // and of all that follow
		wants  [3]want
		steps  []int
	}{
		{"a marker is there", []string{unmet, n, n, n, n, n}, false, [3]want{{before: true}, ok, ok}, []int{5, 6}},
		{"all markers are there", []string{unmet, n, unmet, n, unmet, n}, false, [3]want{{before: true}, {before: true}, {before: true}}, []int{6}},
		{"an item is missing", []string{n, unmet, n, n, n, n}, false, [3]want{{dropped: "[0]"}, {dropped: "[0]"}, ok}, []int{5, 6}},
		{"two items are missing", []string{n, unmet, n, unmet, n, n}, false, [3]want{{dropped: "[0]"}, {dropped: "[0 1]"}, ok}, []int{4, 6}},
		{"an Op's condition", []string{n, n, n, n, n, unmet}, false, [3]want{ok, ok, {unmet: true}}, []int{4, 6}},
		{"an Op's condition and its marker", []string{n, n, n, n, unmet, unmet}, false, [3]want{ok, ok, {before: true}}, []int{4, 6}},
		{"an Op's condition, its marker in conflict", []string{n, n, n, n, conflict, unmet}, false, [3]want{ok, ok, ok}, nil},
		{"conflict", []string{n, n, n, conflict, n, n}, false, [3]want{ok, ok, ok}, nil},
		{"throttled", []string{n, n, n, "ThrottlingError", n, n}, false, [3]want{ok, ok, ok}, nil},
		{"no throughput", []string{n, n, n, "ProvisionedThroughputExceeded", n, n}, false, [3]want{ok, ok, ok}, nil},
		{"not known", []string{n, n, n, "Novel", n, n}, false, [3]want{ok, ok, ok}, nil},
		{"no step to blame", []string{n, n, n, n, n, n}, false, [3]want{ok, ok, ok}, []int{6, 6}},
		{"no reasons", []string{}, false, [3]want{ok, ok, ok}, nil},
		{"too few reasons", []string{unmet}, false, [3]want{ok, ok, ok}, []int{6, 6}},
		{"an Add of one unit is invalid", []string{n, n, n, invalid, n, n}, false, [3]want{ok, {permanent: true}, ok}, []int{4, 6}},
		{"an Op is invalid", []string{n, n, n, n, n, "ItemCollectionSizeLimitExceeded"}, false, [3]want{ok, ok, {permanent: true}}, []int{4, 6}},
		{"a marker is invalid", []string{n, n, n, n, invalid, n}, false, [3]want{ok, ok, {permanent: true}}, []int{4, 6}},
		{"invalid, but done before", []string{n, n, unmet, invalid, n, n}, false, [3]want{ok, {before: true}, ok}, []int{4, 6}},
		{"an Add of two units is invalid", []string{n, invalid, n, n, n, n}, false, [3]want{ok, ok, ok}, []int{2, 2, 3, 6}},
		{"always in conflict", []string{conflict, conflict, conflict, conflict, conflict, conflict}, true, [3]want{{failed: true}, {failed: true}, {failed: true}}, []int{6, 6, 6, 6}},
		{"never a step to blame", []string{n, n, n, n, n, n}, true, [3]want{{failed: true}, {failed: true}, {failed: true}}, []int{6, 6, 6, 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, 1, faults{})
				for _, key := range []string{"a", "b"} {
					s.items["counters/"+key] = map[string]string{"pk": key}
				}
				s.answer = func(n int, _ *dynamodb.TransactWriteItemsInput) error {
					if n == 1 || c.always {
						return cancelled(c.codes...)
					}
					return nil
				}
				got := together(t, s.store(Options{Attempts: 4}),
					dynamo.Unit{Marker: marker("e0"), Adds: []dynamo.Add{addTo("a", 1)}},
					dynamo.Unit{Marker: marker("e1"), Adds: []dynamo.Add{addTo("a", 1), addTo("b", 1)}},
					dynamo.Unit{Marker: marker("e2"), Ops: []dynamo.Op{dynamo.Update("states", pk("s"), "SET #s = :s").Name("#s", "s").Value(":s", "x")}})
				for i, r := range got {
					dropped := ""
					if r.applied.Dropped != nil {
						dropped = fmt.Sprint(r.applied.Dropped)
					}
					if have := (want{r.applied.Before, dropped, dynamo.IsCondition(r.err), sluice.IsPermanent(r.err), r.err != nil && !dynamo.IsCondition(r.err) && !sluice.IsPermanent(r.err)}); have != c.wants[i] {
						t.Errorf("e%d: %+v %v", i, r.applied, r.err)
					}
				}
				// The order of separate transactions is random, because the backoff is.
				if slices.Sort(s.steps); c.steps != nil && !slices.Equal(s.steps, c.steps) {
					t.Errorf("transactions of %v operations, want %v", s.steps, c.steps)
				}
			})
		})
	}
}

// A request that is refused as a whole is taken apart until the one to blame is
// alone.
func TestOnceFindsTheUnitToBlame(t *testing.T) {
	for name, c := range map[string]struct {
		op        dynamo.Op
		permanent bool
	}{
		"an expression":              {dynamo.Update("things", pk("x"), "SET !"), true},
		"a table that is not there":  {dynamo.Delete("missing", pk("x")), false},
		"one that its caller hides":  {dynamo.Update("missing", pk("x"), "SET #a = :a"), false},
		"a number of too many parts": {dynamo.Update("things", pk("x"), "SET !").Value(":n", json.Number("1")), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, 1, faults{})
				units := make([]dynamo.Unit, 20)
				for i := range units {
					a := addTo(fmt.Sprint(i%3), 1)
					a.Create = true
					units[i] = dynamo.Unit{Marker: marker("%d", i), Adds: []dynamo.Add{a}}
				}
				if c.op.Kind == dynamo.DeleteOp {
					c.op = dynamo.Check("missing", pk("x"), "#s = :s")
				}
				units[7].Ops = []dynamo.Op{c.op}
				for i, r := range together(t, s.store(Options{}), units...) {
					if (r.err != nil) != (i == 7) || sluice.IsPermanent(r.err) != (c.permanent && i == 7) {
						t.Errorf("unit %d: %+v", i, r)
					}
				}
				if s.requests > 12 {
					t.Errorf("%d requests", s.requests)
				}
			})
		})
	}
}

// If the SDK refuses to send a request, only the unit at fault fails.
func TestOnceFindsTheUnitThatCannotBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tablesStub{other: func(string) (int, string) { return 200, `{}` }}
		got := together(t, s.store(t, Options{}),
			dynamo.Unit{Marker: marker("0"), Adds: []dynamo.Add{addTo("a", 1)}},
			dynamo.Unit{Marker: marker("1"), Ops: []dynamo.Op{dynamo.Update("things", pk("x"), "")}},
			dynamo.Unit{Marker: marker("2"), Adds: []dynamo.Add{addTo("a", 1)}})
		for i, r := range got {
			if (r.err != nil) != (i == 1) || sluice.IsPermanent(r.err) != (i == 1) {
				t.Errorf("unit %d: %+v", i, r)
			}
		}
	})
}

func TestUnitsThatAreRefused(t *testing.T) {
	many := make([]dynamo.Add, 100)
	for i := range many {
		many[i] = addTo(fmt.Sprint(i), 1)
	}
	st := newService(t, 1, faults{}).store(Options{})
	for want, u := range map[string]dynamo.Unit{
		"it is 101 operations":                {Marker: marker("m"), Adds: many},
		"is touched twice":                    {Marker: marker("m"), Adds: []dynamo.Add{addTo("a", 1), addTo("a", 1)}},
		`of table "markers" is touched twice`: {Marker: marker("m"), Ops: []dynamo.Op{dynamo.Delete("markers", pk("m"))}},
		"marker: it needs a Table":            {Adds: many[:1]},
		"add 0, to table \"counters\": By":    {Marker: marker("m"), Adds: []dynamo.Add{{Table: "counters", Key: pk("a")}}},
		"add 0, to table \"\": no table":      {Marker: marker("m"), Adds: []dynamo.Add{{Key: pk("a"), By: map[string]int64{"n": 1}}}},
		"add 0, to table \"c\": there is no":  {Marker: marker("m"), Adds: []dynamo.Add{{Table: "c", By: map[string]int64{"n": 1}}}},
		"write 0, to table \"c\": value :x":   {Marker: marker("m"), Ops: []dynamo.Op{dynamo.Delete("c", pk("a")).Value(":x", 1.5)}},
	} {
		if _, err := st.Once(t.Context(), u); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A unit with two hot items has its turn, though others want only one of them.
func TestOnceKeepsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		st := s.store(Options{})
		add := func(key string) dynamo.Add {
			return dynamo.Add{Table: "counters", Key: pk("%s", key), By: map[string]int64{"n": math.MaxInt64}, Create: true} // two of them share no transaction
		}
		done := make(chan struct{})
		var others sync.WaitGroup
		for w := range 8 {
			others.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-done:
						return
					default:
					}
					if _, err := st.Once(t.Context(), dynamo.Unit{Marker: marker("%d-%d", w, i), Adds: []dynamo.Add{add([]string{"a", "b"}[w%2])}}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		time.Sleep(50 * time.Millisecond)
		count := func() int { s.mu.Lock(); defer s.mu.Unlock(); return s.requests }
		before := count()
		if _, err := st.Once(t.Context(), dynamo.Unit{Marker: marker("both"), Adds: []dynamo.Add{add("a"), add("b")}}); err != nil {
			t.Error(err)
		}
		if n := count() - before; n > 20 { // of a round of the others, and what was on its way
			t.Errorf("it waited for %d requests", n)
		}
		close(done)
		others.Wait()
	})
}

// A caller waits for the result of a sent request, also after its time is over.
func TestOnceWaitsForWhatIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		st := s.store(Options{Attempts: 1})
		st.once.send = func(ctx context.Context, in *dynamodb.TransactWriteItemsInput) error {
			time.Sleep(100 * time.Millisecond)
			return s.send(ctx, in)
		}
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		for i, ctx := range []context.Context{short, t.Context()} {
			wg.Go(func() {
				if got, err := st.Once(ctx, dynamo.Unit{Marker: marker("%d", i)}); err != nil || got.Before {
					t.Error(i, got, err)
				}
			})
		}
		wg.Wait()
		if !slices.Equal(s.steps, []int{2}) {
			t.Errorf("requests of %v operations, want one of both", s.steps)
		}
	})
}

// Once ends in its time, and the time of one caller is not that of others.
func TestOnceInTime(t *testing.T) {
	// Nothing happens any more but that the time runs out.
	synctest.Test(t, func(t *testing.T) {
		st := newService(t, 1, faults{}).store(Options{})
		st.once.send = func(ctx context.Context, _ *dynamodb.TransactWriteItemsInput) error { <-ctx.Done(); return ctx.Err() }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := st.Once(ctx, dynamo.Unit{Marker: marker("m")}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		s.answer = func(int, *dynamodb.TransactWriteItemsInput) error { return failure(500, "InternalServerError", "") }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := s.store(Options{Attempts: 1000, Backoff: time.Minute}).Once(ctx, dynamo.Unit{Marker: marker("m")})
		if err == nil || sluice.IsPermanent(err) || !strings.Contains(err.Error(), "InternalServerError") {
			t.Error(err)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("took %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		var begun atomic.Bool
		st := s.store(Options{})
		slow := st.once.send
		st.once.send = func(ctx context.Context, in *dynamodb.TransactWriteItemsInput) error {
			if !begun.Swap(true) { // whose time is over during the request
				<-ctx.Done()
				return ctx.Err()
			}
			return slow(ctx, in)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := addTo("a", 1)
		a.Create = true
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := st.Once(ctx, dynamo.Unit{Marker: marker("1"), Adds: []dynamo.Add{a}}); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		time.Sleep(10 * time.Millisecond)
		if _, err := st.Once(t.Context(), dynamo.Unit{Marker: marker("2"), Adds: []dynamo.Add{a}}); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

// A panic during a request becomes an error of its callers, and blocks nobody else.
func TestOnceSurvivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		s.answer = func(n int, _ *dynamodb.TransactWriteItemsInput) error {
			if n == 1 {
				panic("on purpose")
			}
			return nil
		}
		st := s.store(Options{})
		a := addTo("a", 1)
		a.Create = true
		u := dynamo.Unit{Marker: marker("1"), Adds: []dynamo.Add{a}}
		if _, err := st.Once(t.Context(), u); err == nil || !strings.Contains(err.Error(), "on purpose") {
			t.Error(err)
		}
		if got, err := st.Once(t.Context(), u); err != nil || got.Before {
			t.Error(got, err)
		}
	})
}
