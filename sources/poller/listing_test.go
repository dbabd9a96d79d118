package poller_test

import (
	"math"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/streamtest"
)

// Users of other tools met these failures: only the first page of the shards is
// read, a listing does not end, or listings exceed the limit of the service.

func TestAListingReadsAllItsPages(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	inWorld(t, streamtest.TableOptions{Shards: 250}, func(w *world) {
		w.put(keys(1000)...)
		d := w.start()
		w.pass(2 * time.Second)
		w.once(0)
		if n := len(w.calls("DescribeStream", "")); n < 3 {
			w.Errorf("%d pages of 250 shards", n)
		}
		d.end()
	})
}

func TestAListingEnds(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 3}, func(w *world) {
		repair := w.svc.Fail(streamtest.Fault{Op: "DescribeStream", Loop: true})
		d := w.start()
		w.put(keys(10)...)
		w.pass(10 * time.Second)
		w.once(0)
		if n := len(w.calls("DescribeStream", "")); n > 5 {
			w.Errorf("%d calls for pages that repeat", n)
		}
		repair()
		w.svc.Fail(streamtest.Fault{Op: "DescribeStream", Hang: true})
		w.pass(time.Minute)
		began := time.Now()
		d.end()
		if took := time.Since(began); took > time.Second {
			w.Errorf("a listing that hangs holds the end up for %v", took)
		}
	})
}

func TestAFailedPageIsAskedForAgain(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	inWorld(t, streamtest.TableOptions{Shards: 9}, func(w *world) {
		w.svc.SetLimits(streamtest.Limits{PageShards: 2})
		w.o.BusyInterval, w.o.IdleInterval = 0, 0 // the default pace
		d := w.start()
		w.put(keys(30)...)
		w.pass(time.Second)
		w.table.Roll(w.shard(0)) // its child is on the last page
		w.pass(time.Second)
		before := len(w.calls("DescribeStream", ""))
		w.svc.Fail(streamtest.Fault{Op: "DescribeStream", After: 2, Times: 8, Error: "InternalServerError"})
		w.pass(58*time.Second + 500*time.Millisecond)
		w.put(keys(30)...)
		w.pass(time.Second)
		w.once(0) // though the listing is stuck
		w.table.Roll(w.shard(1))
		w.put(keys(30)...)
		w.pass(2 * time.Minute)
		w.once(0)
		firsts := 0
		for _, c := range w.calls("DescribeStream", "")[before:] {
			if c.Error != "" {
				firsts++
			}
		}
		if firsts != 8 {
			w.Errorf("%d calls failed, want 8", firsts)
		}
		d.unready("")
		d.end()
	})
}

func TestListingsArePaced(t *testing.T) {
	for name, allowed := range map[string]float64{"unthrottled": math.Inf(1), "throttled": 2} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, streamtest.TableOptions{Shards: 40}, func(w *world) {
				w.svc.SetLimits(streamtest.Limits{PageShards: 1, DescribesPerStream: allowed})
				w.o.BusyInterval = 5 * time.Second
				w.put(keys(100)...)
				d := w.start()
				w.pass(2 * time.Minute)
				w.put(keys(100)...)
				w.pass(6 * time.Second)
				w.once(0)
				calls := w.calls("DescribeStream", "")
				for i := range calls {
					if i >= 10 && calls[i].Time.Sub(calls[i-10].Time) <= time.Second {
						w.Fatalf("eleven calls within a second from %v", calls[i-10].Time)
					}
				}
				if perSecond := float64(len(calls)) / 126; perSecond > 5 {
					w.Errorf("%.1f calls a second", perSecond)
				}
				for _, sh := range w.table.Shards() { // one more may be the trial at the start
					if n := len(w.calls("GetShardIterator", sh.ID)); n > 2 {
						w.Errorf("%d iterators of a shard: its reader was reset", n)
					}
				}
				d.end()
			})
		})
	}
}

func TestListingsMayComeInAnyOrder(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 6}, func(w *world) {
		w.svc.SetLimits(streamtest.Limits{PageShards: 5})
		w.svc.Chaos(streamtest.Chaos{Seed: 1, Shuffled: 1})
		d := w.start()
		for i := range 6 {
			w.put(keys(20)...)
			w.pass(time.Second)
			w.table.Split(w.shard(i))
		}
		w.put(keys(20)...)
		w.pass(5 * time.Second)
		w.once(0)
		d.end()
	})
}

func TestThrottledListingsResetNoReader(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	inWorld(t, streamtest.TableOptions{Shards: 120}, func(w *world) {
		w.svc.SetLimits(streamtest.Limits{PageShards: 10, DescribesPerStream: 1})
		w.o.BusyInterval = 5 * time.Second
		w.put(keys(300)...)
		d := w.start()
		w.pass(2 * time.Minute)
		w.once(0)
		open := w.open()
		for i := range 5 {
			w.table.Split(open[i])
		}
		w.put(keys(300)...)
		w.pass(time.Minute)
		w.once(0)
		for _, id := range open {
			if n := len(w.calls("GetShardIterator", id)); n > 2 {
				w.Errorf("%d iterators of a shard: its reader was reset", n)
			}
		}
		d.end()
	})
}
