package poller_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// What users of other tools complain of most, each as it happens to them. Of
// several workers that share shards (9 and 11) there is what one and a
// newcomer can show.

func TestComplaint01AnErrorSkipsTheBatch(t *testing.T) {
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

func TestComplaint02IdleForEverAfterAShardsEnd(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		d := w.start()
		for i := range 8 {
			w.put("a")
			w.pass(2 * time.Minute)
			w.table.Roll(w.shard(i)) // of a stream that is idle
			w.pass(5 * time.Minute)
			w.put("a", "b")
			w.pass(1100 * time.Millisecond) // the longest interval
			w.once(0)
		}
		d.end()
	})
}

func TestComplaint03ReadyButDead(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	denied := streamtest.Fault{Error: "AccessDeniedException"}
	for _, c := range []struct {
		name   string
		fault  streamtest.Fault
		reason string
	}{
		{"no answers", streamtest.Fault{Op: "GetRecords", Hang: true}, "no successful poll"},
		{"errors", streamtest.Fault{Op: "GetRecords", Error: "InternalServerError"}, "no successful poll"},
		{"throttled for good", streamtest.Fault{Op: "GetRecords", Error: "ThrottlingException"}, "no successful poll"},
		{"cut answers", streamtest.Fault{Op: "GetRecords", Cut: true}, "no successful poll"},
		{"denied", denied, "AccessDeniedException"},
		{"shards cannot be listed", streamtest.Fault{Op: "DescribeStream", Error: "InternalServerError"}, "shards cannot be listed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
				d := w.start()
				w.put(keys(10)...)
				w.pass(5 * time.Second)
				d.unready("")
				repair := w.svc.Fail(c.fault)
				w.pass(100 * time.Second)
				d.unready(c.reason)
				w.pass(10 * time.Minute)
				d.unready(c.reason)
				repair()
				w.put(keys(10)...)
				w.pass(3 * time.Minute)
				d.unready("")
				w.once(0)
				d.end()
			})
		})
	}
	t.Run("a handler that hangs", func(t *testing.T) {
		inWorld(t, streamtest.TableOptions{}, func(w *world) {
			release := make(chan struct{})
			w.handle = func(_ context.Context, name string) error {
				if name == "a1" {
					<-release
				}
				return nil
			}
			d := w.start()
			w.put("a", "b", "c")
			w.pass(6 * time.Minute)
			d.unready("watermark has not moved")
			close(release)
			w.pass(5 * time.Second)
			d.unready("")
			w.once(0)
			d.end()
		})
	})
}

func TestComplaint04ExpiredIteratorsTriedForEver(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 5}, func(w *world) {
		d := w.start()
		for range 6 {
			w.put(keys(20)...)
			w.pass(2 * time.Second)
			w.svc.Advance(expiry)
		}
		w.put(keys(20)...)
		w.pass(3 * time.Second)
		w.once(0)
		expired := 0
		for _, c := range w.calls("GetRecords", "") {
			if c.Error == "ExpiredIteratorException" {
				expired++
			}
		}
		if expired != 6*5 {
			w.Errorf("%d calls with expired iterators, want one of each", expired)
		}
		d.end()
	})
}

func TestComplaint05LossOnReshard(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
				rnd := rand.New(rand.NewPCG(seed, 5))
				w.o.BusyInterval, w.o.IdleInterval = 300*time.Millisecond, 3*time.Second
				w.svc.Chaos(streamtest.Chaos{Seed: seed, Shuffled: .3, Incomplete: .1, Repeated: .2, Stale: .2})
				d := w.start()
				for range 40 {
					w.put(keys(10)...)
					switch open := w.open(); rnd.IntN(4) {
					case 0:
						w.table.Split(open[rnd.IntN(len(open))])
					case 1:
						w.table.Roll(open[rnd.IntN(len(open))])
					}
					w.pass(time.Duration(rnd.Int64N(int64(time.Second))))
				}
				w.svc.Chaos(streamtest.Chaos{})
				w.pass(70 * time.Second)
				w.once(0)
				d.end()
			})
		})
	}
}

// open returns the ids of the shards that are open.
func (w *world) open() (ids []string) {
	for _, sh := range w.table.Shards() {
		if sh.Open {
			ids = append(ids, sh.ID)
		}
	}
	return ids
}

func TestComplaint06LastPageLost(t *testing.T) {
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

func TestComplaint07ChildrenBesideTheirParents(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
		var mu sync.Mutex
		rnd := rand.New(rand.NewPCG(7, 7))
		w.handle = func(context.Context, string) error {
			mu.Lock()
			d := time.Duration(rnd.Int64N(int64(2 * time.Second)))
			mu.Unlock()
			time.Sleep(d)
			return nil
		}
		d := w.start()
		for i := range 6 {
			w.put(keys(12)...)
			w.table.Split(w.shard(i))
			w.pass(500 * time.Millisecond)
		}
		w.pass(time.Minute)
		w.once(0)
		d.end()

		parents, shardOf, left := make(map[string]string), make(map[sluice.Sequence]string), make(map[string]int)
		for _, sh := range w.table.Shards() {
			parents[sh.ID] = sh.Parent
		}
		for _, c := range w.table.Changes() {
			shardOf[c.Sequence] = c.ShardID
			left[c.ShardID]++
		}
		for _, h := range w.got {
			left[shardOf[h.seq]]--
			for p := parents[shardOf[h.seq]]; p != ""; p = parents[p] {
				if left[p] > 0 {
					w.Fatalf("%s was handled while %d records of an ancestor of its shard were not", h.name, left[p])
				}
			}
		}
	})
}

func TestComplaint08MinutesToBoot(t *testing.T) {
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

func TestComplaint09CostOfLeases(t *testing.T) {
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
				w.o.BusyInterval = 30 * time.Second // polls are another matter
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
				// Of an idle hour: a sign of life every 2 s, for all shards.
				if calls["claim"]+calls["checkpoint"]+calls["release"] != 0 || calls["heartbeat"] > 1801 || calls["shards"] > 61 {
					w.Errorf("calls of an idle hour: %v", calls)
				}
				d.end()
			})
		})
	}
}

func TestComplaint10HandOffToAWorkerThatIsGone(t *testing.T) {
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

func TestComplaint11NewcomersStealNothing(t *testing.T) {
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

func TestComplaint12ThrottledListings(t *testing.T) {
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

func TestComplaint13ATransientErrorEndsIt(t *testing.T) {
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

func TestComplaint14NoTrueLag(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		var fails atomic.Bool
		w.handle = func(context.Context, string) error {
			if fails.Load() {
				return errors.New("not now")
			}
			return nil
		}
		d := w.start()
		near := func(when string, want time.Duration) {
			w.Helper()
			if got := d.Lag(); got < want || got > want+2*time.Second {
				w.Errorf("%s: a lag of %v, want %v", when, got, want)
			}
		}
		w.pass(30 * time.Minute)
		near("idle", 0)
		fails.Store(true)
		w.put("a")
		w.pass(time.Minute)
		w.put("b")
		w.pass(time.Minute)
		near("a record waits", 2*time.Minute)
		fails.Store(false)
		w.pass(2 * time.Minute)
		near("settled", 0)
		repair := w.svc.Fail(streamtest.Fault{Op: "GetRecords", Hang: true})
		w.pass(2 * time.Minute)
		near("not polled", 2*time.Minute)
		repair()
		w.pass(time.Minute)
		near("polled again", 0)
		d.end()
		w.pass(time.Hour)
		w.put("c")
		w.pass(time.Hour)
		w.handle = func(ctx context.Context, _ string) error { // never done
			<-ctx.Done()
			return ctx.Err()
		}
		d = w.start()
		w.pass(5 * time.Second)
		near("a backlog", time.Hour+5*time.Second)
		d.end()
	})
}

func TestComplaint15LatestLosesRecords(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
		w.o.Start = poller.Latest
		w.put(keys(10)...)
		w.table.Roll(w.shard(0))
		w.put(keys(10)...)
		w.pass(time.Hour)
		for i := range 5 {
			crash := w.crashing()
			d := w.start()
			w.put(keys(10)...)
			w.table.Roll(w.open()[i%2])
			w.put(keys(10)...)
			w.pass(time.Duration(i) * 700 * time.Millisecond)
			if i%2 == 0 {
				crash(d)
			} else {
				d.end()
			}
			w.put(keys(10)...)
			w.table.Split(w.open()[i%2])
			w.pass(10 * time.Minute)
		}
		d := w.start()
		w.pass(5 * time.Second)
		w.complete(20)
		d.end()
	})
}
