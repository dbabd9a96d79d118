package dynamodb

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/quorum"
	"github.com/sluicehq/sluice/internal/tally"
)

// A request that takes long does not hold up others.
func TestOnceGoesOnBesideASlowRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		st := s.store(Options{})
		st.once.send = func(ctx context.Context, in *dynamodb.TransactWriteItemsInput) error {
			if len(in.TransactItems) == 1 {
				time.Sleep(time.Minute)
			}
			return s.send(ctx, in)
		}
		var slow sync.WaitGroup
		slow.Go(func() {
			if _, err := st.Once(t.Context(), dynamo.Unit{Marker: marker("slow")}); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(10 * time.Millisecond)
		a := addTo("a", 1)
		a.Create = true
		begin := time.Now()
		for i := range 100 {
			if _, err := st.Once(t.Context(), dynamo.Unit{Marker: marker("%d", i), Adds: []dynamo.Add{a}}); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("a hundred others took %v", took)
		}
		slow.Wait()
		if len(st.once.holders) > 0 {
			t.Errorf("%d items are still held", len(st.once.holders))
		}
	})
}

// In a commit of two transactions, the caller of the fast transaction does not wait for
// the slow one.
func TestOnceAnswersBesideASlowTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newService(t, 1, faults{}).store(Options{})
		took := map[string]time.Duration{"slow": 3 * time.Second, "fast": 10 * time.Millisecond}
		st.once.send = func(_ context.Context, in *dynamodb.TransactWriteItemsInput) error {
			time.Sleep(took[plain(in.TransactItems[0].Put.Item["pk"])])
			return nil
		}
		var wg sync.WaitGroup
		for name, d := range took {
			wg.Go(func() {
				begin := time.Now()
				u := dynamo.Unit{Marker: marker("%s", name), Ops: []dynamo.Op{dynamo.Put(name, pk("x"))}} // of a key that is not known: it goes alone
				if _, err := st.Once(t.Context(), u); err != nil {
					t.Error(err)
				}
				if waited := time.Since(begin) - d; waited > 2*onceLinger {
					t.Errorf("%s: its caller had the result %v after its transaction took %v", name, waited, d)
				}
			})
		}
		wg.Wait()
	})
}

// Units that come while a transaction holds an item wait together. They do not wait for
// a hanging transaction.
func TestOnceWaitsForItemsOnTheirWay(t *testing.T) {
	for took, free := range map[time.Duration]time.Duration{100 * time.Millisecond: 100 * time.Millisecond, 3 * time.Second: slowTransaction} {
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, 1, faults{})
			s.answer = func(n int, _ *dynamodb.TransactWriteItemsInput) error {
				if n == 1 {
					s.mu.Unlock()
					time.Sleep(took)
					s.mu.Lock()
				}
				return nil
			}
			s.items["counters/a"] = map[string]string{"pk": "a"}
			st := s.store(Options{})
			begin := time.Now()
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					if _, err := st.Once(t.Context(), dynamo.Unit{Marker: marker("%d", i), Adds: []dynamo.Add{addTo("a", 1)}}); err != nil {
						t.Error(err)
					}
					if waited := time.Since(begin); i > 0 && (waited < free || waited > free+50*time.Millisecond) {
						t.Errorf("took %v: unit %d waited for %v", took, i, waited)
					}
				})
				time.Sleep(5 * time.Millisecond)
			}
			wg.Wait()
			if want := []int{2, 4}; !slices.Equal(s.steps, want) {
				t.Errorf("took %v: requests of %v operations, want %v", took, s.steps, want)
			}
		})
	}
}

// A unit that waits for another's transaction is not sent when its caller's time
// is over.
func TestOnceWithdrawsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		st := s.store(Options{})
		st.once.send = func(ctx context.Context, in *dynamodb.TransactWriteItemsInput) error {
			time.Sleep(200 * time.Millisecond)
			return s.send(ctx, in)
		}
		a := addTo("a", 1)
		a.Create = true
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := st.Once(t.Context(), dynamo.Unit{Marker: marker("1"), Adds: []dynamo.Add{a}}); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(10 * time.Millisecond)
		var w waits
		m := &quorum.Member{Scope: &quorum.Scope{}, Host: &w}
		m.Scope.Enter(1)
		ctx, cancel := context.WithTimeout(quorum.With(t.Context(), m), 20*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if _, err := st.Once(ctx, dynamo.Unit{Marker: marker("2"), Adds: []dynamo.Add{a}}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(begin); took != 20*time.Millisecond {
			t.Errorf("withdrawn after %v", took)
		}
		wg.Wait()
		if w.parked != w.unparked || m.Scope.Idle() {
			t.Errorf("its handler waited %d times, and was woken %d times", w.parked, w.unparked)
		}
		if n := s.items["counters/a"]["n"]; n != "1" {
			t.Errorf("counted %q", n)
		}
	})
}

// A unit with two items that are never free at the same time has its turn.
func TestOnceKeepsTheTurnOutOfStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newService(t, 1, faults{}).store(Options{})
		st.once.send = func(_ context.Context, in *dynamodb.TransactWriteItemsInput) error {
			took := 40*time.Millisecond - onceLinger
			if plain(in.TransactItems[1].Update.Key["pk"]) == "a" {
				took -= 20 * time.Millisecond
			}
			time.Sleep(took)
			return nil
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
					if _, err := st.Once(t.Context(), dynamo.Unit{Marker: marker("%d-%d", w, i), Adds: []dynamo.Add{addTo([]string{"a", "b"}[w%2], math.MaxInt64)}}); err != nil { // two of them share no transaction
						t.Error(err)
					}
				}
			})
			if w == 0 {
				time.Sleep(10 * time.Millisecond) // that b comes after a
			}
		}
		time.Sleep(time.Second)
		begin := time.Now()
		if _, err := st.Once(t.Context(), dynamo.Unit{Marker: marker("both"), Adds: []dynamo.Add{addTo("a", 1), addTo("b", 1)}}); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > 500*time.Millisecond {
			t.Errorf("it waited for %v", took)
		}
		close(done)
		others.Wait()
	})
}

// waits counts the waits of a handler.
type waits struct{ parked, unparked int }

func (w *waits) Parked(n int)   { w.parked += n }
func (w *waits) Unparked(n int) { w.unparked += n }

// A handler gives its place to others also between two attempts.
func TestOnceGivesItsPlaceToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		s.answer = func(n int, _ *dynamodb.TransactWriteItemsInput) error {
			time.Sleep(time.Millisecond) // until then the handler waits for the transaction
			if n == 1 {
				return failure(400, "ThrottlingException", "")
			}
			return nil
		}
		var w waits
		m := &quorum.Member{Scope: &quorum.Scope{}, Host: &w}
		m.Scope.Enter(1)
		if _, err := s.store(Options{}).Once(quorum.With(t.Context(), m), dynamo.Unit{Marker: marker("1")}); err != nil {
			t.Error(err)
		}
		if w.parked != 5 || w.unparked != 5 { // for the commit and its transaction, before the next try, and as before
			t.Errorf("it waited %d times, and was woken %d times", w.parked, w.unparked)
		}
	})
}

// Each unit is counted once, however often it was sent.
func TestOnceTellsOfEachUnitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{before: .1, throttle: .1, foreign: .01})
		var counts tally.Tally
		st := s.store(Options{Metrics: &counts, Attempts: 100, Timeout: time.Hour})
		var wg sync.WaitGroup
		for i := range 300 {
			a := addTo("a", 1)
			a.Create = true
			u := dynamo.Unit{Marker: marker("%d", i), Adds: []dynamo.Add{a}}
			if i%100 == 7 {
				u.Ops = []dynamo.Op{dynamo.Update("things", pk("x"), "SET !")}
			}
			wg.Go(func() {
				_, err := st.Once(t.Context(), u)
				if refused := i%100 == 7; sluice.IsPermanent(err) != refused || (err != nil) != refused {
					t.Error(i, err)
				}
			})
		}
		wg.Wait()
		if n := counts.By("sluice_commit_items_total"); n["dynamodb,committed"] != 297 || n["dynamodb,failed"] != 3 {
			t.Errorf("units: %v", n)
		}
	})
}
