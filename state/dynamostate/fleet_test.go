package dynamostate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

// fleet are workers that share a table. Each claims every half second the shards that
// it does not have, and writes a heartbeat each second, as a poller does.
type fleet struct {
	t        *testing.T
	table    *memory
	requests atomic.Int64 // but for those of begin
	shards   []string
	workers  []*member
	running  *sync.WaitGroup
	deadly   string // the shard that ends its workers

	mu     sync.Mutex
	claims map[string]int     // of each shard
	work   map[string]float64 // of each shard
}

type member struct {
	*Store
	name string
	dead atomic.Bool

	mu     sync.Mutex
	mine   map[string]state.Lease
	asking map[string]bool
}

// newFleet starts n workers, which have the shards in turn.
func newFleet(t *testing.T, n, shards int) *fleet {
	f := &fleet{t: t, table: new(memory)}
	f.table.Fault = func(string, rows.Key) mishap {
		f.requests.Add(1)
		return mishap{}
	}
	f.running = new(sync.WaitGroup)
	t.Cleanup(f.running.Wait) // the test's context has ended
	var workers []*member
	for i := range n {
		workers = append(workers, &member{Store: over(f.table), name: fmt.Sprintf("w%02d", i), mine: map[string]state.Lease{}})
	}
	for i := range shards {
		f.shards = append(f.shards, fmt.Sprintf("shard-%03d", i))
		w := workers[i%n]
		if err := f.claim(w, f.shards[i]); err != nil {
			t.Fatalf("%s: a free shard is refused: %v", w.name, err)
		}
	}
	for _, w := range workers {
		f.start(w)
	}
	return f
}

// start runs a worker until it is dead.
func (f *fleet) start(w *member) {
	t, delay := f.t, time.Duration(len(f.workers))*10*time.Millisecond
	f.workers = append(f.workers, w)
	f.running.Go(func() {
		time.Sleep(delay)
		for half := 0; !w.dead.Load() && t.Context().Err() == nil; half++ {
			if half%2 == 0 {
				if err := w.Heartbeat(t.Context(), w.name); err != nil && t.Context().Err() == nil {
					t.Errorf("%s: %v", w.name, err)
				}
			}
			leases, err := w.Moves(t.Context(), w.name, false, f.workOf)
			if err != nil && t.Context().Err() == nil {
				t.Errorf("%s: %v", w.name, err)
			}
			f.release(w, leases)
			for _, id := range f.shards {
				if w.asks(id) {
					f.running.Go(func() { _ = f.claim(w, id) })
				}
			}
			time.Sleep(500 * time.Millisecond)
		}
	})
}

// stop ends a worker as a poller does.
func (f *fleet) stop(w *member) {
	f.t.Helper()
	w.dead.Store(true)
	time.Sleep(600 * time.Millisecond) // its loop has ended
	if _, err := w.Moves(f.t.Context(), w.name, true, f.workOf); err != nil {
		f.t.Error(err)
	}
	time.Sleep(100 * time.Millisecond)
	w.mu.Lock()
	leases := slices.Collect(maps.Values(w.mine))
	w.mu.Unlock()
	f.release(w, leases)
	if err := w.Close(); err != nil {
		f.t.Error(err)
	}
}

func (f *fleet) workOf(l state.Lease) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.work[l.ShardID]
}

func (f *fleet) release(w *member, leases []state.Lease) {
	for _, l := range leases {
		if err := w.Release(f.t.Context(), l); err != nil && f.t.Context().Err() == nil {
			f.t.Errorf("%s: %v", w.name, err)
		}
		w.mu.Lock()
		delete(w.mine, l.ShardID)
		w.mu.Unlock()
	}
}

// asks reports whether the worker is to claim a shard now.
func (w *member) asks(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.mine[id]; ok || w.asking[id] {
		return false
	}
	if w.asking == nil {
		w.asking = make(map[string]bool)
	}
	w.asking[id] = true
	return true
}

func (f *fleet) claim(w *member, id string) error {
	sh, err := w.Claim(f.t.Context(), stream, id, "", w.name)
	w.mu.Lock()
	delete(w.asking, id)
	if err == nil {
		w.mine[id] = state.Lease{Stream: stream, ShardID: id, Owner: w.name, Epoch: sh.Epoch}
	}
	w.mu.Unlock()
	if err != nil {
		return err
	}
	if id == f.deadly {
		time.AfterFunc(time.Second, func() { w.dead.Store(true) })
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.claims == nil {
		f.claims = make(map[string]int)
	}
	f.claims[id]++
	return nil
}

// owners counts the shards of each owner.
func (f *fleet) owners() map[string]int {
	f.t.Helper()
	all, err := over(f.table).Shards(context.Background(), stream)
	if err != nil {
		f.t.Fatal(err)
	}
	owners := map[string]int{}
	for _, sh := range all {
		owners[sh.Owner]++
	}
	return owners
}

// grow starts workers beside those of the fleet.
func (f *fleet) grow(n int) {
	for range n {
		f.start(&member{Store: over(f.table), name: fmt.Sprintf("w%02d", len(f.workers)), mine: map[string]state.Lease{}})
	}
}

// balanced waits until everybody has about the same number of shards, and returns how
// long that took.
func (f *fleet) balanced(difference int, within time.Duration) time.Duration {
	f.t.Helper()
	began := time.Now()
	for {
		least, most, living := len(f.shards), 0, 0
		owners := f.owners()
		for _, w := range f.workers {
			if !w.dead.Load() {
				living++
				least, most = min(least, owners[w.name]), max(most, owners[w.name])
				delete(owners, w.name)
			}
		}
		if most-least <= difference && len(owners) == 0 {
			return time.Since(began)
		}
		if time.Since(began) > within {
			f.t.Fatalf("%d workers are not balanced after %v: %v", living, within, f.owners())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// moved returns how often each shard was claimed since the last call.
func (f *fleet) moved() map[int]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	times := map[int]int{}
	for _, n := range f.claims {
		times[n]++
	}
	f.claims = map[string]int{}
	return times
}
