//go:build integration || long

package poller_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/streamtest"
)

// Users of other tools met these failures: idle shards are polled too often, a
// backlog is read too slowly, or more is fetched than memory can hold.

func TestABacklogIsReadAtOnceAndAnIdleShardSlowly(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for allowed, within := range map[float64]time.Duration{math.Inf(1): 1500 * time.Millisecond, 10: 20 * time.Second} {
		t.Run(fmt.Sprint(allowed, " calls a second"), func(t *testing.T) {
			inWorld(t, streamtest.TableOptions{}, func(w *world) {
				w.svc.SetLimits(streamtest.Limits{ReadsPerShard: allowed})
				w.o.BusyInterval, w.o.IdleInterval = 0, 0 // the default pace
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

func TestThrottlingSlowsOnlyItsShard(t *testing.T) {
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

func TestAFullWindowStopsFetching(t *testing.T) {
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

func TestHundredsOfShardsStartWithinSeconds(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	inWorld(t, streamtest.TableOptions{Shards: 400}, func(w *world) {
		w.svc.Fail(streamtest.Fault{Delay: 20 * time.Millisecond}) // each call
		for range 2 {                                              // the second time with positions
			from := len(w.table.Changes())
			w.put(keys(800)...)
			w.got = nil
			d := w.start()
			w.pass(2 * time.Second)
			w.once(from)
			d.end()
		}
	})
}
