package poller_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/streamtest"
)

// Users of other tools met these failures: reading stops or records are lost
// when the state store fails.

func TestAThrottledStoreRepeatsButLosesNothing(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
		var n atomic.Int64
		w.o.Store = &flaky{Store: w.store, fail: func(string) error {
			if n.Add(1)%3 != 0 {
				return errStore
			}
			return nil
		}}
		seen := false
		for range 4 {
			d := w.start()
			for range 8 {
				w.put(keys(6)...)
				w.pass(2 * time.Second)
				seen = seen || strings.Contains(strings.Join(d.NotReady(), "\n"), errStore.Error())
			}
			d.stop()
			<-d.done // with an error, or without
		}
		w.o.Store = nil
		d := w.start()
		w.pass(20 * time.Second)
		w.complete(0)
		d.end()
		if !seen {
			w.Error("health never said that the store fails")
		}
	})
}

// While the store fails, whatever the call, records are handled on, health says
// so, and nothing counts as stored; when it is back, all is as before.
func TestAFailingStoreStopsNoHandler(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
		var down atomic.Bool
		rows := &flaky{Store: w.store, fail: func(string) error {
			if down.Load() {
				return errStore
			}
			return nil
		}}
		w.o.Store = rows
		d := w.start()
		w.put(keys(10)...)
		w.pass(2 * time.Second)
		d.unready("")
		before := w.stored(w.shard(0))
		down.Store(true)
		for i := range 10 {
			w.put(keys(10)...)
			w.pass(10 * time.Second)
			d.unready("state store: checkpoint fails since")
			if n := len(strings.Fields(w.handled())); n != 20+10*i {
				w.Errorf("%d changes are handled while the store fails, want %d", n, 20+10*i)
			}
		}
		if after := w.stored(w.shard(0)); after != before {
			w.Errorf("stored %+v while the store fails, before %+v", after, before)
		}
		// What begins meanwhile waits for its claim.
		w.table.Roll(w.shard(0))
		w.put(keys(10)...)
		w.pass(10 * time.Second)
		for _, call := range []string{"checkpoint", "heartbeat"} {
			d.unready("state store: " + call + " fails since")
		}
		down.Store(false)
		w.pass(30 * time.Second)
		d.unready("")
		w.once(0)
		d.end()
		changes := w.table.Changes()
		last := make(map[string]string)
		for _, c := range changes {
			last[c.ShardID] = string(c.Sequence)
		}
		for id, seq := range last {
			if got := w.stored(id).Position.Sequence; got != seq {
				w.Errorf("shard %s is stored at %s, want %s", id, got, seq)
			}
		}
	})
}

func TestFailedClaimsAreRetried(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
		var down atomic.Bool
		down.Store(true)
		w.o.Store = &flaky{Store: w.store, fail: func(call string) error {
			if call == "claim" && down.Load() {
				return errStore
			}
			return nil
		}}
		d := w.start()
		w.put(keys(10)...)
		w.pass(time.Minute)
		w.wantHandled("before anything is claimed", "")
		d.unready("state store: claim fails since")
		down.Store(false)
		w.pass(3 * time.Second)
		w.once(0)
		d.unready("")
		d.end()
	})
}
