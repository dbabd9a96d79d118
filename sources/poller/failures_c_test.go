package poller_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// What broke for users of other tools: checkpoints.

func TestF032PositionStaysBehindWhatIsNotHandled(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.handle = func(ctx context.Context, name string) error {
			if name == "b1" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		crash := w.crashing()
		d := w.start()
		w.put("a", "b", "c", "d", "a")
		w.pass(10 * time.Second)
		if got, want := w.stored(w.shard(0)).Position.Sequence, string(w.table.Changes()[0].Sequence); got != want {
			w.Errorf("stored %s while the second change is not handled, want %s", got, want)
		}
		crash(d)
		w.handle = nil
		d = w.start()
		w.pass(3 * time.Second)
		w.complete(0)
		d.end()
	})
}

func TestF033FailedRecordIsNotSkipped(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		var tries atomic.Int64
		w.handle = func(_ context.Context, name string) error {
			if name == "a2" && tries.Add(1) <= 4 {
				return errors.New("not now")
			}
			return nil
		}
		d := w.start()
		for range 3 {
			w.put("a", "b")
			w.pass(100 * time.Millisecond)
		}
		w.pass(time.Minute)
		w.once(0)
		if tries.Load() != 5 {
			w.Errorf("%d calls for a record that fails four times", tries.Load())
		}
		d.end()
	})
}

func TestF034NumbersGrowInWidth(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		widths := make(map[int]bool)
		for range 40 {
			d := w.start()
			w.put("a", "b")
			w.pass(2 * time.Second)
			d.end()
			changes := w.table.Changes()
			last := changes[len(changes)-1].Sequence
			widths[len(last)] = true
			if got := w.stored(w.shard(0)).Position.Sequence; got != string(last) {
				w.Fatalf("stored %s, want %s", got, last)
			}
		}
		w.once(0)
		if len(widths) < 2 {
			w.Errorf("all numbers have the same width")
		}
	})
}

func TestF039ThrottledStoreCostsRepeatsAtMost(t *testing.T) {
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
				seen = seen || strings.Contains(strings.Join(d.Health().Reasons, "\n"), errStore.Error())
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
func TestF042StoreFailsForAWhile(t *testing.T) {
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

func TestF042ClaimsFailForAWhile(t *testing.T) {
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

func TestF045EmptyPollsLeaveThePosition(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.put("a")
		for range 3 {
			d := w.start()
			w.pass(time.Minute) // of empty polls
			w.put("a")
			w.pass(time.Minute)
			changes := w.table.Changes()
			if got, want := w.stored(w.shard(0)).Position.Sequence, string(changes[len(changes)-1].Sequence); got != want {
				w.Errorf("stored %s, want %s", got, want)
			}
			d.end()
		}
		w.once(0)
	})
}

func TestF046TheEndIsStored(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.put("a", "a")
		w.table.Roll(w.shard(0))
		w.table.Roll(w.shard(1)) // without records
		w.put("a")
		var down atomic.Bool
		down.Store(true)
		w.o.Store = &flaky{Store: w.store, fail: func(call string) error {
			if call == "checkpoint" && down.Load() {
				return errStore
			}
			return nil
		}}
		d := w.start()
		w.pass(time.Minute)
		w.wantHandled("while the end cannot be stored", "a1 a2")
		down.Store(false)
		w.pass(30 * time.Second)
		w.once(0)
		for i, want := range []state.Position{
			{Sequence: string(w.table.Changes()[1].Sequence), Finished: true}, {Finished: true}, {Sequence: string(w.table.Changes()[2].Sequence)},
		} {
			if got := w.stored(w.shard(i)).Position; got != want {
				w.Errorf("shard %d is stored at %v, want %v", i, got, want)
			}
		}
		d.end()
		w.o.Start = poller.Latest // a stored end is one, whatever the start
		d = w.start()
		w.pass(time.Minute)
		w.once(0)
		d.end()
	})
}

func TestF047PositionFollowsTheFlush(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		flushed := make(chan struct{})
		w.handle = func(context.Context, string) error { // its sink has not answered
			<-flushed
			return nil
		}
		w.put(keys(30)...)
		w.table.Roll(w.shard(0))
		d := w.start()
		w.pass(time.Minute)
		if got := w.stored(w.shard(0)).Position; got != (state.Position{}) {
			w.Errorf("stored %v before anything is durable", got)
		}
		close(flushed)
		w.pass(3 * time.Second)
		if got := w.stored(w.shard(0)).Position; !got.Finished {
			w.Errorf("stored %v", got)
		}
		w.once(0)
		d.end()
	})
}

func TestF048FourHoursOfWork(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.o.BusyInterval = time.Minute
		calls := 0
		w.handle = func(_ context.Context, name string) error {
			if name == "a1" {
				calls++
				time.Sleep(4 * time.Hour)
			}
			return nil
		}
		w.put("a", "b", "a")
		d := w.start()
		w.pass(3 * time.Hour)
		w.table.Roll(w.shard(0))
		w.put("a")
		w.pass(2 * time.Hour)
		w.once(0)
		if calls != 1 {
			w.Errorf("%d calls for work of four hours", calls)
		}
		d.end()
	})
}
