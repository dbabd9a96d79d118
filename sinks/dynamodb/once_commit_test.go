package dynamodb

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/dynamo"
	"github.com/sluicehq/sluice/internal/quorum"
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
		if st.once.slow != 0 {
			t.Errorf("%d commits are still thought to be slow", st.once.slow)
		}
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
		if w.parked != 3 || w.unparked != 3 { // an attempt, the wait, an attempt
			t.Errorf("it waited %d times, and was woken %d times", w.parked, w.unparked)
		}
	})
}

// Hooks are told once of each unit, however often it was sent.
func TestOnceTellsOfEachUnitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{before: .1, throttle: .1, foreign: .01})
		var items, failed int
		st := s.store(Options{Hooks: Hooks{Committed: func(c batch.Commit) { items, failed = items+c.Items, failed+c.Failed }}})
		var wg sync.WaitGroup
		for i := range 300 {
			a := addTo("a", 1)
			a.Create = true
			u := dynamo.Unit{Marker: marker("%d", i), Adds: []dynamo.Add{a}}
			if i%100 == 7 {
				u.Ops = []dynamo.Op{dynamo.Update("things", pk("x"), "SET !")}
			}
			wg.Go(func() {
				if _, err := st.Once(t.Context(), u); sluice.IsPermanent(err) != (i%100 == 7) {
					t.Error(i, err)
				}
			})
		}
		wg.Wait()
		if items != 300 || failed != 3 {
			t.Errorf("%d units, of which %d failed", items, failed)
		}
	})
}
