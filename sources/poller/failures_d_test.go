package poller_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/streamtest"
)

// What broke for users of other tools: polling, backpressure, shutdown.

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

func TestF049PanicIsOneShards(t *testing.T) {
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

func TestF050GracefulStop(t *testing.T) {
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
func TestF050HeldRecordIsNotStored(t *testing.T) {
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

func TestF051StopWhileReadersWait(t *testing.T) {
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

func TestF052OwnershipIsGivenUpAtOnce(t *testing.T) {
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

func TestF053ShardsAreAcceptedAfterErrors(t *testing.T) {
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

func TestF054BacklogAtOnceIdleSlowly(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for allowed, within := range map[float64]time.Duration{math.Inf(1): 1500 * time.Millisecond, 10: 20 * time.Second} {
		t.Run(fmt.Sprint(allowed, " calls a second"), func(t *testing.T) {
			inWorld(t, streamtest.TableOptions{}, func(w *world) {
				w.svc.SetLimits(streamtest.Limits{ReadsPerShard: allowed})
				d := w.start()
				w.pass(2 * time.Minute) // idle, to begin with
				before := len(w.calls("GetRecords", ""))
				w.pass(10 * time.Minute)
				if n := len(w.calls("GetRecords", "")) - before; n > 10*60+1 {
					w.Errorf("%d calls in 10 minutes without a record", n)
				}
				filler := strings.Repeat("x", 125_000)
				for i := range 200 { // 25 pages of 1 MB
					w.table.Put(map[string]any{"pk": fmt.Sprintf("large%d-", i), "v": 1, "x": filler})
				}
				w.pass(within)
				w.once(0)
				d.end()
			})
		})
	}
}

func TestF055SecondInstanceDoesNotReadToo(t *testing.T) {
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

func TestF056ThrottlingIsOneShards(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
		throttled, other := w.shard(0), w.shard(1)
		minute := func(id string) int {
			before := len(w.calls("GetRecords", id))
			for range 60 {
				w.put(keys(4)...) // some of each shard
				w.pass(time.Second)
			}
			return len(w.calls("GetRecords", id)) - before
		}
		d := w.start()
		normal := minute(other)
		repair := w.svc.Fail(streamtest.Fault{Op: "GetRecords", Shard: throttled, Error: "ProvisionedThroughputExceededException"})
		before := len(w.calls("GetRecords", throttled))
		if n := minute(other); n < normal-5 {
			w.Errorf("%d calls a minute of the other shard, %d before", n, normal)
		}
		if n := len(w.calls("GetRecords", throttled)) - before; n > 30 {
			w.Errorf("a throttled shard was asked %d times in a minute", n)
		}
		d.unready("no successful poll")
		repair()
		w.pass(time.Minute)
		w.once(0)
		d.unready("")
		d.end()
	})
}

func TestF057FullWindowStopsFetching(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.o.Limit, w.o.Flow.Window = 10, 20
		release := make(chan struct{})
		w.handle = func(context.Context, string) error {
			<-release
			return nil
		}
		w.put(keys(500)...)
		d := w.start()
		w.pass(10 * time.Minute)
		fetched := 0
		for _, c := range w.calls("GetRecords", "")[1:] { // the first is the trial
			fetched += c.Records
		}
		if fetched > 20+2*10 {
			w.Errorf("%d records were fetched into a window of 20", fetched)
		}
		d.unready("watermark has not moved")
		close(release)
		w.pass(time.Minute)
		w.once(0)
		d.unready("")
		d.end()
	})
}
