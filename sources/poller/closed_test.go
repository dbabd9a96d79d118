package poller_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// Users of other tools met these failures: the last page of a closed shard is
// lost, or a finished shard is read again.

func TestRecordsOfTheLastPageAreHandled(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		d := w.start()
		for i := range 5 {
			w.put("a", "b") // in the answer that has no next iterator
			w.table.Roll(w.shard(i))
			w.pass(2 * time.Second)
			w.once(0)
		}
		d.end()
	})
}

func TestALastPageOfAnySizeIsHandled(t *testing.T) {
	for n := range 8 { // around what two pages hold
		t.Run(fmt.Sprint(n, " records"), func(t *testing.T) {
			inWorld(t, streamtest.TableOptions{}, func(w *world) {
				w.o.Limit = 3
				w.put(keys(n)...)
				w.table.Roll(w.shard(0))
				w.put(keys(n)...)
				d := w.start()
				w.pass(3 * time.Second)
				w.put(keys(n)...)
				w.table.Roll(w.shard(1))
				w.pass(3 * time.Second)
				w.once(0)
				d.end()
			})
		})
	}
}

func TestAFinishedShardIsNotCalledAgain(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		d := w.start()
		w.put("a")
		w.pass(time.Second)
		closed := w.shard(0)
		w.table.Roll(closed)
		w.pass(2 * time.Second)
		before := len(w.calls("GetRecords", closed)) + len(w.calls("GetShardIterator", closed))
		w.put("a")
		w.pass(2 * time.Minute)
		if n := len(w.calls("GetRecords", closed)) + len(w.calls("GetShardIterator", closed)) - before; n != 0 {
			w.Errorf("%d calls after the shard's end", n)
		}
		if sh := w.stored(closed); !sh.Position.Finished {
			w.Errorf("stored: %+v", sh)
		}
		w.once(0)
		d.end()
	})
}

func TestPartOfAClosedShardIsNotItsEnd(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.o.Limit, w.o.Flow.Window, w.o.Grace = 2, 4, time.Second
		w.put(strings.Split("a b c d e f g h", " ")...)
		closed := w.shard(0)
		w.table.Roll(closed)
		stopped := true
		w.handle = func(ctx context.Context, name string) error {
			if stopped && name > "c" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		d := w.start()
		w.pass(3 * time.Second)
		d.end()
		if sh := w.stored(closed); sh.Position.Finished || sh.Position.Sequence == "" {
			w.Errorf("stored: %+v", sh)
		}
		stopped = false
		w.put("a")
		d = w.start()
		w.pass(3 * time.Second)
		w.once(0)
		d.end()
	})
}

func TestEmptyClosedShardsAreFinishedOnce(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		for i := range 6 {
			w.table.Roll(w.shard(i))
		}
		d := w.start()
		w.put("a")
		w.pass(3 * time.Second)
		w.once(0)
		w.pass(5 * time.Minute)
		for i := range 6 {
			// The start tries the two calls with one shard.
			if n := len(w.calls("GetRecords", w.shard(i))); n > 2 {
				w.Errorf("an empty shard was read %d times", n)
			}
			if n := strings.Count(w.log(), fmt.Sprint("finished ", i)); n != 1 {
				w.Errorf("shard %d was finished %d times", i, n)
			}
		}
		d.end()
		before := len(w.calls("GetRecords", ""))
		d = w.start()
		w.pass(3 * time.Second)
		others := 0 // one is the trial
		for _, c := range w.calls("GetRecords", "")[before:] {
			if c.Shard != w.shard(6) {
				others++
			}
		}
		if others > 1 {
			w.Errorf("finished shards were read %d times after a restart", others)
		}
		d.end()
	})
}

func TestTheEndOfAShardIsStored(t *testing.T) {
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

func TestNoRecordIsSkippedAroundTheEnd(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		d := w.start()
		for i := range 5 {
			w.put("a")
			if i%2 == 0 {
				w.table.Roll(w.shard(len(w.table.Shards()) - 1))
			}
			w.pass(50 * time.Millisecond)
		}
		w.pass(5 * time.Second)
		w.wantHandled("5 writes", "a1 a2 a3 a4 a5")
		d.end()
	})
}
