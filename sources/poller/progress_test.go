package poller_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// Users of other tools met this failure: a position is stored before every
// record up to it is handled.

func TestThePositionStaysBehindUnhandledRecords(t *testing.T) {
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

func TestAFailedRecordIsNotSkipped(t *testing.T) {
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

func TestAnOutageOfTheSinkSkipsNothing(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		var down atomic.Bool
		down.Store(true)
		w.handle = func(context.Context, string) error {
			if down.Load() {
				return errors.New("the sink is away")
			}
			return nil
		}
		d := w.start()
		for range 10 {
			w.put(keys(10)...)
			w.pass(30 * time.Second)
		}
		w.wantHandled("during the outage", "")
		if got := w.stored(w.shard(0)).Position; got != (state.Position{}) {
			w.Errorf("stored %v", got)
		}
		d.unready("fails for every record")
		down.Store(false)
		w.pass(2 * time.Minute)
		w.once(0)
		d.unready("")
		d.end()
	})
}

func TestThePositionWaitsForTheFlush(t *testing.T) {
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

func TestFourHoursOfWorkAreDoneOnce(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.o.BusyInterval, w.o.IdleInterval = time.Minute, 0
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

func TestEmptyPollsLeaveThePosition(t *testing.T) {
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

func TestPositionsHoldNumbersOfAnyWidth(t *testing.T) {
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

func TestEveryStreamHasItsOwnPositions(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		run := func() {
			d := w.start()
			w.pass(20 * time.Second)
			d.end()
		}
		w.put("a", "a")
		run()
		w.once(0)
		// Another stream of the application.
		orders, read := w.table, w.got
		w.table, w.got = w.svc.CreateTable("users", streamtest.TableOptions{}), nil
		w.o.Streams = append(w.o.Streams, poller.Stream{Table: "users"})
		w.put("a", "b")
		run()
		w.once(0)
		// The table, made anew.
		w.svc.DeleteTable("orders")
		users := w.table
		w.table, w.got = w.svc.CreateTable("orders", streamtest.TableOptions{}), nil
		w.put("a", "b", "c")
		run()
		run()
		w.once(0)
		if orders.StreamARN() == w.table.StreamARN() || users.StreamARN() == "" || len(read) != 2 {
			w.Error("the streams are not what they should be")
		}
	})
}
