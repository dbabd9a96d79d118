package poller_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// giving is a store that notes what a poller has to do.
type giving struct {
	state.Store
	of atomic.Pointer[func(state.Lease) float64]
}

func (g *giving) work(l state.Lease) float64 { return (*g.of.Load())(l) }

func (g *giving) Moves(_ context.Context, _ string, _ bool, work func(state.Lease) float64) ([]state.Lease, error) {
	g.of.Store(&work)
	return nil, nil
}

// The store learns how many changes and KiB a second each shard has.
func TestWorkOfAShard(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
		store := &giving{Store: w.store}
		w.o.Store = store
		d := w.start()
		var leases [2]state.Lease
		for i := range leases {
			sh := w.stored(w.shard(i))
			leases[i] = state.Lease{Stream: state.Stream{Application: "sluice", ARN: w.table.StreamARN()}, ShardID: sh.ID, Owner: sh.Owner, Epoch: sh.Epoch}
		}
		work := func() [2]float64 { return [2]float64{store.work(leases[0]), store.work(leases[1])} }
		for range 600 {
			w.put("a", "a") // of one shard
			w.pass(time.Second)
		}
		busy := work()
		if low, high := min(busy[0], busy[1]), max(busy[0], busy[1]); low != 0 || high < 2 || high > 8 {
			t.Errorf("2 changes a second of one shard: work %v, want 0 and 2 with about 1 KiB for each", busy)
		}
		w.pass(2 * time.Minute) // without changes
		for i, rest := range work() {
			if want := busy[i] / 4; math.Abs(rest-want) > 0.1*want {
				t.Errorf("after two minutes at rest the work is %v, want a quarter of %v", rest, busy[i])
			}
		}
		d.end()
		if left := work(); left != [2]float64{} {
			t.Error(fmt.Sprint("a shard that nobody reads has work ", left))
		}
	})
}
