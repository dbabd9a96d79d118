package snapshot

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/state"
)

// mortal is a store whose process is killed at its nth write: that one, and all
// later ones, are not stored, and from then on nothing has any effect.
type mortal struct {
	*state.Memory
	left int64
	dead atomic.Bool
	kill func()
}

func (m *mortal) PutValue(ctx context.Context, app, name string, data []byte) error {
	if atomic.AddInt64(&m.left, -1) < 0 {
		m.dead.Store(true)
		m.kill()
	}
	if m.dead.Load() {
		return errors.New("the process is dead")
	}
	return m.Memory.PutValue(ctx, app, name, data)
}

func (m *mortal) DeleteValue(ctx context.Context, app, name string) error {
	if m.dead.Load() {
		return errors.New("the process is dead")
	}
	return m.Memory.DeleteValue(ctx, app, name)
}

// For any size of pages and windows, number of segments, failing answers and kills:
// every item that exists all the time is handled at least once.
func TestNothingIsSkipped(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { crashes(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func crashes(t *testing.T, rng *rand.Rand) {
	st := newStub(rng.IntN(120))
	st.pageSize = 1 + rng.IntN(15)
	st.took = time.Duration(rng.IntN(200)) * time.Millisecond
	if rng.IntN(2) == 0 {
		st.hidden = func(pk string) bool { return place(pk)%5 > 0 }
	}
	faults := []string{"ProvisionedThroughputExceededException", "InternalServerError", "cut", "damaged", "void"}
	often := rng.IntN(4)
	st.fail = func(op string, _ int) string {
		if op == "Scan" && rng.IntN(10) < often {
			return faults[rng.IntN(len(faults))]
		}
		return ""
	}
	o := testOptions(nil)
	o.Scan.Segments, o.Scan.PageItems, o.Scan.ReadUnits = rng.IntN(6), int32(rng.IntN(12)), 1e6
	o.Flow.Window, o.Flow.Concurrency = 1+rng.IntN(30), 1+rng.IntN(8)
	o.SaveEvery = time.Duration(1+rng.IntN(500)) * time.Millisecond
	o.Grace = time.Duration(1+rng.IntN(600)) * time.Millisecond
	slow := time.Duration(1 + rng.IntN(1000))
	memory := started(t)
	var got seen
	lives := 0
	for {
		lives++
		ctx, kill := context.WithCancel(t.Context())
		store := &mortal{Memory: memory, left: 1 << 30, kill: kill}
		switch {
		case lives >= 8:
		case rng.IntN(2) == 0:
			store.left = int64(rng.IntN(25))
		default: // it is only asked to stop
			stop := time.AfterFunc(time.Duration(rng.IntN(8000))*time.Millisecond, kill)
			defer stop.Stop()
		}
		// Random numbers of handlers must not come from rng, which others use.
		m := routed(func(ctx context.Context, rec *sluice.Record) error {
			if store.dead.Load() {
				return errors.New("the process is dead")
			}
			if backoff.Sleep(ctx, rand.N(slow*time.Millisecond)+1) != nil {
				return ctx.Err()
			}
			if rand.IntN(10) == 0 {
				return errors.New("now and then")
			}
			if store.dead.Load() {
				return errors.New("the process is dead")
			}
			got.add(rec)
			return nil
		})
		o.Store = store
		s := newSource(t, st, m, o)
		err := s.Run(ctx)
		stopped := ctx.Err() != nil
		kill()
		if store.dead.Load() || stopped && !s.Progress().Finished {
			continue
		}
		if err != nil || !s.Progress().Finished {
			t.Fatalf("life %d: %v, %+v", lives, err, s.Progress())
		}
		break
	}
	got.all(t, st)
	if t.Failed() {
		t.Logf("%d items, %d lives, segments %d, pages of %d", len(st.items), lives, o.Scan.Segments, st.pageSize)
	}
	left, err := memory.ListValues(t.Context(), "sluice", "")
	if err != nil || len(left) > 1 {
		t.Errorf("left behind in the store: %v, %v", left, err)
	}
}
