package poller_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/streamtest"
)

// Users of other tools met this failure: reading stops for good after an error
// that passes.

// panicking has the nth starts of reading a shard panic, outside the handlers.
func (w *world) panicking(nth ...int64) {
	var starts atomic.Int64
	w.o.Hooks.ShardStarted = func(poller.Shard, sluice.Sequence) {
		n := starts.Add(1)
		for _, x := range nth {
			if n == x {
				panic("hook")
			}
		}
	}
}

func TestAPanicEndsOnlyItsShard(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 3}, func(w *world) {
		w.panicking(2)
		w.put(keys(30)...)
		d := w.start()
		w.pass(time.Second)
		if n := len(strings.Fields(w.handled())); n == 0 || n == 30 || strings.Count(w.log(), "failed") != 1 {
			w.Errorf("%d of 30 changes were handled; events: %s", n, w.log())
		}
		w.pass(10 * time.Second)
		w.once(0)
		d.end()
	})
}

func TestShardsAreReadAfterErrors(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
		w.panicking(1, 2, 3, 4, 5)
		var claims atomic.Int64
		w.o.Store = &flaky{Store: w.store, fail: func(call string) error {
			if call == "claim" && claims.Add(1)%3 == 0 {
				return errStore
			}
			return nil
		}}
		w.put(keys(20)...)
		d := w.start()
		w.pass(time.Minute)
		w.once(0)
		for i := range 4 {
			w.table.Split(w.shard(i))
			w.put(keys(20)...)
			w.pass(5 * time.Second)
		}
		w.pass(10 * time.Second)
		w.once(0)
		d.unready("")
		d.end()
	})
}

func TestTransientErrorsEndNothing(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, streamtest.TableOptions{Shards: 3}, func(w *world) {
				d := w.start()
				w.svc.Chaos(streamtest.Chaos{
					Seed: seed, Errors: .2, Throttles: .2, Hang: .02, Cut: .1, Slow: .1, Empty: .2, Short: .2, Expired: .1,
				})
				for range 40 {
					w.put(keys(15)...)
					w.pass(time.Second)
				}
				w.svc.Chaos(streamtest.Chaos{})
				w.pass(2 * time.Minute)
				w.once(0)
				d.unready("")
				select {
				case err := <-d.done:
					w.Fatalf("Run returned %v", err)
				default:
				}
				d.end()
			})
		})
	}
}
