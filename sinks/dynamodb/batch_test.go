package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/tally"
	"github.com/sluicehq/sluice/item"
)

func TestConcurrentWritesShareRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{delay: 10 * time.Millisecond}
		var counts tally.Tally
		st := s.store(t, Options{Keys: map[string][]string{"t": {"pk"}}, Metrics: &counts})
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				if err := st.Put(t.Context(), "t", thing(fmt.Sprint("p", i), "x")); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if err := st.Delete(t.Context(), fmt.Sprint("u", i%3), thing(fmt.Sprint("d", i), "")); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		commits := counts.Values("sluice_commit_batch_items", "dynamodb")
		if len(s.requests) != 4 || len(commits) != 4 || time.Since(start) != s.delay || len(s.calls) != 0 {
			t.Errorf("%d requests, %d commits in %v, want 4 in one round trip; %q", len(s.requests), len(commits), time.Since(start), s.calls)
		}
	})
}

// The last call wins, and no request has a key twice.
func TestWritesOfOneKeyKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{delay: 10 * time.Millisecond}
		st := s.store(t, Options{})
		if err := st.Put(t.Context(), "t", thing("a", "0")); err != nil { // and the key is known
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for _, w := range []string{"a=1", "b=1", "a", "a=3", "b", "a=4"} {
			wg.Go(func() {
				pk, v, put := strings.Cut(w, "=")
				err := error(nil)
				if put {
					err = st.Put(t.Context(), "t", thing(pk, v))
				} else {
					err = st.Delete(t.Context(), "t", thing(pk, ""))
				}
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // the calls have an order
		}
		wg.Wait()
		s.expect(t, "t+a=0", "t+a=1 t+b=1", "t-a t-b", "t+a=3", "t+a=4")
		if fmt.Sprint(s.items) != "map[t a:4]" {
			t.Error(s.items)
		}
	})
}

// A key is its attributes, with their names and types; numbers are equal by
// their value.
func TestKeysAreComparedAsDynamoDBDoes(t *testing.T) {
	key := func(pk, sk item.Attribute) sluice.Item { return item.Of(pk, sk) }
	st := (&tablesStub{}).store(t, Options{Keys: map[string][]string{"t": {"pk", "sk"}, "n": {"pk", "sk"}}})
	id := func(table string, it sluice.Item) keyID {
		w, err := st.newPut(table, it, st.keysOf(t.Context(), table))
		if err != nil {
			t.Fatal(err)
		}
		return w.id
	}
	ab := id("t", key(item.String("pk", "a"), item.String("sk", "b")))
	for name, other := range map[string]keyID{
		"other way round": id("t", key(item.String("pk", "b"), item.String("sk", "a"))),
		"other table":     id("n", key(item.String("pk", "a"), item.String("sk", "b"))),
		"other type":      id("t", key(item.String("pk", "a"), item.Binary("sk", []byte("b")))),
		"shifted":         id("t", key(item.String("pk", "ab"), item.String("sk", ""))),
	} {
		if ab == other {
			t.Errorf("%s: the same key", name)
		}
	}
	one := id("t", key(item.String("pk", "a"), item.Number("sk", "1")))
	for name, same := range map[string]keyID{
		"1.0":           id("t", key(item.String("pk", "a"), item.Number("sk", "1.0"))),
		"10e-1":         id("t", key(item.String("pk", "a"), item.Number("sk", "10e-1"))),
		"swapped":       id("t", key(item.Number("sk", "1"), item.String("pk", "a"))),
		"more than key": id("t", item.Of(item.String("x", "y"), item.Number("sk", "1"), item.String("pk", "a"))),
		"by its ARN":    id("arn:aws:dynamodb:us-east-1:1:table/t", key(item.String("pk", "a"), item.Number("sk", "1"))),
	} {
		if same != one {
			t.Errorf("%s: another key", name)
		}
	}
	del, err := st.newDelete("t", key(item.Number("sk", "1.00"), item.String("pk", "a")), nil)
	if err != nil || del.id != one {
		t.Errorf("a Delete has another key: %v", err)
	}
}

func TestNothingToWriteMakesNoCall(t *testing.T) {
	var s tablesStub
	st := s.store(t, Options{})
	if errs := st.PutAll(t.Context(), "t", nil); errs != nil {
		t.Error(errs)
	}
	if errs := st.DeleteAll(t.Context(), "t", []sluice.Item{}); errs != nil {
		t.Error(errs)
	}
	if len(s.requests)+len(s.calls) != 0 {
		t.Errorf("%q %q", s.requests, s.calls)
	}
}

func TestWhatCanNeverBeWritten(t *testing.T) {
	var s tablesStub
	st := s.store(t, Options{})
	large := strings.Repeat("x", 400<<10)
	check := func(err error, want string) {
		t.Helper()
		if !sluice.IsPermanent(err) || !strings.Contains(fmt.Sprint(err), want) || !strings.Contains(fmt.Sprint(err), `table "t"`) || len(fmt.Sprint(err)) > 300 {
			t.Errorf("%.500v", err)
		}
	}
	check(st.Put(t.Context(), "t", sluice.Item{}), "no item")
	check(st.Delete(t.Context(), "t", sluice.Item{}), "no key")
	check(st.Put(t.Context(), "t", item.Of(item.String("v", "x"))), `["pk"]`)
	check(st.Put(t.Context(), "t", thing("a", large)), "409600")
	errs := st.PutAll(t.Context(), "t", []sluice.Item{thing("a", "1"), thing("b", large), item.Of(item.String("v", "x")), thing("c", "1")})
	if len(errs) != 4 || errs[0] != nil || errs[3] != nil {
		t.Fatalf("%.1000v", errs)
	}
	check(errs[1], "409600")
	check(errs[2], `["pk"]`)
	s.expect(t, "t+a=1 t+c=1")
	if err := st.Put(t.Context(), "t", thing("a", large[:400<<10-4])); err != nil { // with its names and its key, just what is allowed
		t.Error(err)
	}
}

func TestRequestsKeepTheLimitOfBytes(t *testing.T) {
	var s tablesStub
	st := s.store(t, Options{})
	w, err := st.newPut("t", thing("a", strings.Repeat("x", 300<<10)), st.keysOf(t.Context(), "t"))
	if err != nil || w.bytes < 300<<10 || w.bytes > 301<<10 {
		t.Errorf("%v %v", w.bytes, err)
	}
}

// The order of keys does not matter, so that requests need not wait for one
// another.
func TestDeleteAllGoesSeveralAtATime(t *testing.T) {
	for _, c := range []struct {
		keys, inFlight, requests, most, rounds int
	}{{25, 16, 1, 1, 1}, {26, 16, 2, 2, 1}, {250, 16, 10, 10, 1}, {1000, 16, 40, 16, 3}, {100, 1, 4, 1, 4}} {
		t.Run(fmt.Sprint(c.keys), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tablesStub{delay: 10 * time.Millisecond}
				st := s.store(t, Options{InFlight: c.inFlight, Linger: -1})
				start := time.Now()
				var keys []sluice.Item
				for i := range c.keys {
					keys = append(keys, thing(fmt.Sprint(i), ""))
				}
				// Nobody says that a batch is due, so that only full ones go; the
				// last one is, by the deadline of its caller.
				if c.keys%25 != 0 {
					st = s.store(t, Options{InFlight: c.inFlight, Linger: time.Nanosecond})
				}
				if errs := st.DeleteAll(t.Context(), "t", keys); errs != nil {
					t.Fatal(errs)
				}
				rounds := int(time.Since(start) / s.delay)
				if len(s.requests) != c.requests || s.most != c.most || rounds != c.rounds {
					t.Errorf("%d requests, %d at a time, %d round trips; want %d, %d, %d", len(s.requests), s.most, rounds, c.requests, c.most, c.rounds)
				}
			})
		})
	}
}

// Writes of a repeated key keep the order of the list. A temporary failure holds back
// later writes of its key, a permanent failure does not.
func TestPutAllWithRepeatedKeys(t *testing.T) {
	for _, c := range []struct {
		name   string
		reply  func(n int, writes []string) stubbed
		failed string
		items  string
	}{
		{"all are done", nil, "[]", "map[t a:3 t b:2 t c:1]"},
		{"the first fails for the moment", func(_ int, w []string) stubbed {
			if slices.Contains(w, "t+a=1") {
				return stubbed{back: []string{"t+a=1"}}
			}
			return stubbed{}
		}, "[0 2 4]", "map[t b:2 t c:1]"},
		{"the first fails for good", func(_ int, w []string) stubbed {
			if slices.Contains(w, "t+a=1") {
				return stubbed{code: "ValidationException"}
			}
			return stubbed{}
		}, "[0]", "map[t a:3 t b:2 t c:1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tablesStub{reply: c.reply}
				st := s.store(t, Options{})
				errs := st.PutAll(t.Context(), "t", things("a=1", "b=1", "a=2", "c=1", "a=3", "b=2"))
				failed := []int{}
				for i, err := range errs {
					if err != nil {
						failed = append(failed, i)
					}
				}
				if fmt.Sprint(failed) != c.failed || fmt.Sprint(s.items) != c.items {
					t.Errorf("%v %v\n%v", failed, s.items, errs)
				}
			})
		})
	}
}

// Two calls that have keys in common, in another order, do not wait for each
// other for ever.
func TestCallsWithKeysInCommon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{delay: time.Millisecond}
		st := s.store(t, Options{})
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				its := things("a="+fmt.Sprint(i), "b="+fmt.Sprint(i), "c="+fmt.Sprint(i))
				if i%2 == 0 {
					slices.Reverse(its)
				}
				if errs := st.PutAll(t.Context(), "t", its); errs != nil {
					t.Error(errs)
				}
			})
		}
		wg.Wait()
		if s.items["t a"] != s.items["t b"] || s.items["t b"] != s.items["t c"] || len(st.order.queues) != 0 {
			t.Errorf("%v %v", s.items, st.order.queues)
		}
	})
}

// A caller that gives up behind an earlier write of its key writes nothing, and delays
// nobody.
func TestGivingUpBehindAnEarlierWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{delay: time.Second}
		st := s.store(t, Options{Keys: map[string][]string{"t": {"pk"}}})
		var wg sync.WaitGroup
		put := func(ctx context.Context, want error, its ...sluice.Item) {
			wg.Go(func() {
				errs := st.PutAll(ctx, "t", its)
				if (errs == nil) != (want == nil) {
					t.Errorf("%v, want %v", errs, want)
				}
				for _, err := range errs {
					if !errors.Is(err, want) || sluice.IsPermanent(err) || !strings.Contains(err.Error(), "not sent") {
						t.Error(err)
					}
				}
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		put(t.Context(), nil, thing("a", "1"))
		put(ctx, gone, thing("a", "2"), thing("b", "2"))
		put(t.Context(), nil, thing("a", "3"))
		put(t.Context(), nil, thing("b", "3"))
		cancel(gone)
		put(ctx, gone, thing("c", "2"))
		wg.Wait()
		if fmt.Sprint(s.items) != "map[t a:3 t b:3]" || len(st.order.queues) != 0 {
			t.Errorf("%v %v", s.items, st.order.queues)
		}
	})
}
