package poller_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/streamtest"
)

// Users of other tools met these failures: a stop loses or repeats records, or
// does not end.

func TestAStopStoresTheExactPosition(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.o.Flow.Concurrency, w.o.Limit, w.o.Grace = 1, 4, 8*time.Second
		w.handle = func(ctx context.Context, _ string) error { // a second of work
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		w.put(keys(20)...)
		for range 4 {
			d := w.start()
			w.pass(2500 * time.Millisecond)
			polls, began := len(w.calls("GetRecords", "")), time.Now()
			d.end()
			if took := time.Since(began); took > w.o.Grace {
				w.Errorf("the end took %v of %v", took, w.o.Grace)
			}
			if n := len(w.calls("GetRecords", "")) - polls; n != 0 {
				w.Errorf("%d pages were fetched after the stop", n)
			}
			done := len(strings.Fields(w.handled()))
			if got, want := w.stored(w.shard(0)).Position.Sequence, string(w.table.Changes()[done-1].Sequence); got != want {
				w.Errorf("%d are handled and %s is stored, want %s", done, got, want)
			}
		}
		w.handle = nil
		d := w.start()
		w.pass(2 * time.Second)
		w.once(0)
		d.end()
	})
}

// A record that cannot be handled yet is held, not passed over: the last thing
// that a stop could get wrong.
func TestAStopDoesNotStoreAHeldRecord(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.handle = func(_ context.Context, name string) error {
			if name == "b1" {
				return errors.New("not now")
			}
			return nil
		}
		w.put("a", "b", "c")
		d := w.start()
		w.pass(5 * time.Second)
		d.end()
		if got, want := w.stored(w.shard(0)).Position.Sequence, string(w.table.Changes()[0].Sequence); got != want {
			w.Errorf("stored %s, want %s", got, want)
		}
		w.handle = nil
		d = w.start()
		w.pass(2 * time.Second)
		w.complete(0)
		d.end()
	})
}

func TestAStopEndsWaitingReaders(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 4}, func(w *world) {
		w.o.Limit, w.o.Flow.Window, w.o.Grace = 1, 1, 5*time.Second
		w.handle = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}
		w.put(keys(40)...)
		for range 5 {
			d := w.start()
			w.pass(time.Second) // every reader has a page in its hands
			began := time.Now()
			d.end()
			if took := time.Since(began); took > w.o.Grace {
				w.Errorf("the end took %v", took)
			}
		}
		if left := workers(); left != "" {
			w.Errorf("still there:\n%s", left)
		}
		w.handle = nil
		w.o.Flow.Window = 0
		d := w.start()
		w.pass(10 * time.Second)
		w.once(0)
		d.end()
	})
}
