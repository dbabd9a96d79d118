package poller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// Users of other tools met these failures: two workers read one shard, nobody
// reads it, or leases cost much. One worker reads here, the others wait.

func TestAWorkerWithoutItsLeaseStops(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		var cancelled atomic.Bool
		w.handle = func(ctx context.Context, name string) error {
			if name == "b1" && !cancelled.Load() {
				<-ctx.Done()
				cancelled.Store(true)
				return nil // it has handled it all the same
			}
			return nil
		}
		d := w.start()
		w.put("a", "b")
		w.pass(2 * time.Second)
		before := w.stored(w.shard(0)).Position
		lease := w.take(w.shard(0))
		w.put("a")
		for range 14 { // a listing tells, as nothing is settled
			w.pass(5 * time.Second)
			if err := w.store.Heartbeat(w.Context(), lease.Owner); err != nil {
				w.Fatal(err)
			}
		}
		if sh := w.stored(w.shard(0)); !cancelled.Load() || sh.Position != before || sh.Owner != lease.Owner {
			w.Errorf("cancelled %v; stored: %+v", cancelled.Load(), sh)
		}
		w.pass(20 * time.Second) // the other is silent
		w.complete(0)
		if w.log() != "started 0, lease lost 0, started 0" {
			w.Errorf("events: %s", w.log())
		}
		d.end()
	})
}

func TestALostLeaseLeavesNoGoroutine(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		d := w.start()
		w.put("a")
		w.pass(2 * time.Second)
		lease := w.take(w.shard(0))
		w.put("a")
		for range 3 { // the other keeps it
			if err := w.store.Heartbeat(w.Context(), lease.Owner); err != nil {
				w.Fatal(err)
			}
			w.pass(5 * time.Second)
		}
		if left := workers(); left != "" {
			w.Errorf("of a shard that is another's there are still:\n%s", left)
		}
		if len(d.Shards()) != 0 || len(d.Held()) != 0 || d.Lag() != 0 {
			w.Errorf("%v, %v and a lag of %v are reported", d.Shards(), d.Held(), d.Lag())
		}
		d.end()
	})
}

func TestAClaimLeavesThePosition(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		d := w.start()
		w.put("a", "b")
		w.pass(2 * time.Second)
		d.end()
		before := w.stored(w.shard(0))
		for range 3 {
			d = w.start()
			w.pass(2 * time.Second)
			d.end()
		}
		after := w.stored(w.shard(0))
		if after.Epoch != before.Epoch+3 {
			w.Errorf("epoch %d after %d and three claims", after.Epoch, before.Epoch)
		}
		if after.Epoch = before.Epoch; after != before {
			w.Errorf("stored %+v, before %+v", after, before)
		}
		w.once(0)
	})
}

func TestAFailingStoreLeavesNoShardWithoutAReader(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, call := range []string{"heartbeat", "claim", "shards", "release"} {
		t.Run(call, func(t *testing.T) {
			inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
				var down atomic.Bool
				w.o.Store = &flaky{Store: w.store, fail: func(c string) error {
					if c == call && down.Load() {
						return errStore
					}
					return nil
				}}
				first := w.start()
				w.o.Store = nil
				w.put(keys(10)...)
				w.pass(2 * time.Second)
				second := w.start() // waits for its turn
				down.Store(true)
				for range 4 { // for longer than an owner lives who is silent
					w.table.Roll(w.shard(len(w.table.Shards()) - 1))
					w.put(keys(10)...)
					w.pass(30 * time.Second)
				}
				down.Store(false)
				w.put(keys(10)...)
				w.pass(2 * time.Minute)
				w.complete(0)
				first.unready("")
				second.unready("")
				first.end()
				second.end()
			})
		})
	}
}

func TestALeaseIsKeptWhileAHandlerBlocks(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		release := make(chan struct{})
		w.handle = func(context.Context, string) error {
			<-release
			return nil
		}
		w.o.Flow.Window = 2
		w.put(keys(10)...)
		first, second := w.start(), w.start()
		w.pass(5 * time.Minute) // much longer than a silent owner lives
		if log := w.log(); log != "started 0" {
			w.Errorf("events: %s", log)
		}
		close(release)
		w.pass(5 * time.Second)
		w.once(0)
		first.end()
		second.end()
	})
}

// A worker whose heartbeats fail for longer than others wait loses its shards. It
// goes on under another name, and reads them again when the other worker ends.
func TestAFencedWorkerGoesOn(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
		var deaf atomic.Bool
		w.o.Store = &flaky{Store: w.store, fail: func(call string) error {
			if call == "heartbeat" && deaf.Load() {
				return errors.New("deaf")
			}
			return nil
		}}
		first := w.start()
		w.put(keys(10)...)
		w.pass(2 * time.Second)
		was := w.stored(w.shard(0)).Owner
		deaf.Store(true)
		w.o.Store = w.store
		second := w.start()
		w.pass(staterules.OwnerTimeout + 5*time.Second)
		deaf.Store(false)
		w.pass(5 * time.Second)
		if now := w.stored(w.shard(0)).Owner; now == was || now == "" {
			w.Fatalf("shard of %q after the time of silence: owner %q", was, now)
		}
		w.put(keys(10)...)
		w.pass(2 * time.Second)
		second.end()
		w.put(keys(10)...)
		w.pass(5 * time.Second)
		w.complete(0)
		if now := w.stored(w.shard(0)).Owner; !strings.HasPrefix(now, was+"/") {
			w.Errorf("shard after the end of the other: owner %q, want a new name of %q", now, was)
		}
		first.end()
	})
}

// A shard that ended its workers waits. The poller is unready, and asks seldom.
func TestADeadlyShardMakesUnready(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		var claims atomic.Int64
		var deadly atomic.Bool
		w.o.Store = &flaky{Store: w.store, fail: func(call string) error {
			if call == "claim" && deadly.Load() {
				claims.Add(1)
				return fmt.Errorf("%w: after record 7", state.ErrDeadly)
			}
			return nil
		}}
		deadly.Store(true)
		w.put("a")
		d := w.start()
		w.pass(time.Minute)
		d.unready("ends its workers: after record 7")
		if n := claims.Load(); n < 2 || n > 7 {
			w.Errorf("%d claims in a minute, want one each 10 s", n)
		}
		deadly.Store(false)
		w.pass(15 * time.Second)
		d.unready("")
		w.complete(0)
		d.end()
	})
}

func TestADeletedRowIsNoticed(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		rows := &flaky{Store: w.store}
		w.o.Store = rows
		w.o.BusyInterval, w.o.IdleInterval = 0, 0 // the default pace
		d := w.start()
		w.put("a", "b")
		w.pass(2 * time.Second)
		w.store = state.NewMemory()
		rows.Store = w.store // without rows
		w.put("a")
		w.pass(5 * time.Second)
		if !strings.HasPrefix(w.log(), "started 0, lease lost 0, started 0") {
			w.Errorf("events: %s", w.log())
		}
		w.put("c")
		w.pass(2 * time.Second)
		w.complete(0)
		if sh := w.stored(w.shard(0)); sh.Position.Sequence != string(w.table.Changes()[3].Sequence) {
			w.Errorf("stored again: %+v", sh)
		}
		d.end()
	})
}

func TestRacingWorkersLoseNothing(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 3}, func(w *world) {
		w.o.CheckpointEvery = 300 * time.Millisecond
		var running []*daemon
		for round := range 12 {
			running = append(running, w.start())
			w.put(keys(20)...)
			w.pass(700 * time.Millisecond)
			if round%3 == 0 { // the one that has it does not know yet
				w.take(w.shard(round / 3 % 3))
			}
			w.put(keys(20)...)
			if len(running) > 2 {
				running[0].end()
				running = running[1:]
			}
		}
		w.pass(time.Minute)
		w.complete(0)
		for _, d := range running {
			d.end()
		}
	})
}

func TestApplicationsShareAStore(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		start := func(app string) *daemon {
			w.o.Application = app
			return w.start()
		}
		w.put("a", "b")
		one, two := start("one"), start("two")
		w.pass(2 * time.Second)
		one.end()
		w.put("a", "b")
		w.pass(2 * time.Second)
		two.end()
		one, two = start("one"), start("two")
		w.pass(2 * time.Second)
		one.end()
		two.end()
		for _, name := range []string{"a1", "b1", "a2", "b2"} {
			if n := strings.Count(" "+w.handled(), " "+name); n != 2 {
				w.Errorf("%s was handled %d times, want once by each", name, n)
			}
		}
	})
}

func TestAStopFreesShardsAtOnce(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
		first, second := w.start(), w.start()
		w.put(keys(10)...)
		w.pass(2 * time.Second)
		first.end()
		w.put(keys(10)...)
		w.pass(1500 * time.Millisecond) // an owner that is silent lives for 10 s
		w.once(0)
		second.end()
	})
}

func TestASecondWorkerAddsNoReads(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 3}, func(w *world) {
		minute := func() int {
			before := len(w.calls("GetRecords", ""))
			w.pass(time.Minute)
			return len(w.calls("GetRecords", "")) - before
		}
		first := w.start()
		w.pass(2 * time.Minute)
		alone := minute()
		second := w.start()
		w.pass(10 * time.Second)
		if n := minute(); n > alone+3 {
			w.Errorf("%d calls a minute by two, %d by one", n, alone)
		}
		first.end()
		second.end()
	})
}

func TestLeasesCostFewCalls(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, shards := range []int{1, 20} {
		t.Run(fmt.Sprint(shards, " shards"), func(t *testing.T) {
			inWorld(t, streamtest.TableOptions{Shards: shards}, func(w *world) {
				var mu sync.Mutex
				calls := make(map[string]int)
				w.o.Store = &flaky{Store: w.store, calls: func(call string) {
					mu.Lock()
					defer mu.Unlock()
					calls[call]++
				}}
				w.o.BusyInterval, w.o.IdleInterval = 30*time.Second, 0 // polls are another matter
				w.put(keys(100)...)
				d := w.start()
				w.pass(30 * time.Second)
				w.once(0)
				mu.Lock()
				claims, checkpoints := calls["claim"], calls["checkpoint"]
				clear(calls)
				mu.Unlock()
				if claims != shards || checkpoints > 12 {
					w.Errorf("%d claims and %d writes of positions to read %d shards", claims, checkpoints, shards)
				}
				w.pass(time.Hour)
				// Of an idle hour: a sign of life each second, for all shards.
				if calls["claim"]+calls["checkpoint"]+calls["release"] != 0 || calls["heartbeat"] > 3601 || calls["shards"] > 61 {
					w.Errorf("calls of an idle hour: %v", calls)
				}
				d.end()
			})
		})
	}
}

func TestAWorkerTakesOverFromACrashedOne(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 3}, func(w *world) {
		crash := w.crashing()
		d := w.start()
		for range 4 {
			w.put(keys(12)...)
			w.pass(2 * time.Second)
			next := w.crashing()
			waiting := w.start()
			w.pass(3 * time.Second)
			crash(d) // it releases nothing
			w.put(keys(12)...)
			w.pass(staterules.OwnerTimeout + 2*time.Second)
			w.complete(0)
			d, crash = waiting, next
		}
		d.end()
	})
}

func TestANewWorkerTakesNoShard(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 4}, func(w *world) {
		first := w.start()
		for range 5 {
			newcomer := w.start()
			for range 5 {
				w.put(keys(20)...)
				w.pass(5 * time.Second)
			}
			newcomer.end()
		}
		w.once(0)
		if n := strings.Count(w.log(), "started"); n != 4 {
			w.Errorf("4 shards were started %d times", n)
		}
		first.end()
	})
}
