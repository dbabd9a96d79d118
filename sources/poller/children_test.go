package poller_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/streamtest"
)

// Users of other tools met these failures: children of a shard are missed, read
// too early, or their parents are read again.

func TestChildrenOfAClosedShardAreRead(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		d := w.start()
		w.put(keys(10)...)
		w.pass(time.Second)
		w.table.Split(w.shard(0))
		w.put(keys(10)...)
		w.pass(3 * time.Second)
		w.once(0)
		d.end()
	})
}

func TestATimerFindsNewShards(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		d := w.start()
		w.put(keys(10)...)
		w.pass(time.Second)
		// The end of a shard finds nothing; only a listing of all does.
		w.svc.Fail(streamtest.Fault{Op: "DescribeStream", Shard: w.shard(0), Error: "ValidationException"})
		w.table.Split(w.shard(0))
		w.put(keys(10)...)
		w.pass(61 * time.Second)
		w.once(0)
		d.end()
	})
}

// A child whose parent was read by a worker that is gone.
func TestASecondWorkerFindsTheChildren(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		first, second := w.start(), w.start()
		w.put(keys(10)...)
		w.pass(time.Second)
		w.table.Hide(w.table.Roll(w.shard(0)), 3)
		w.put(keys(10)...)
		w.pass(time.Second)
		first.end()
		w.pass(61 * time.Second)
		w.once(0)
		second.end()
	})
}

func TestNewShardsAreFoundBesideOpenOnes(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 3}, func(w *world) {
		d := w.start()
		for i := range 3 {
			w.put(keys(20)...)
			w.pass(time.Second)
			w.table.Roll(w.shard(i))
		}
		w.put(keys(20)...)
		w.pass(3 * time.Second)
		w.once(0)
		d.end()
	})
}

func TestChildrenOfAnIdleShardAreReadAtOnce(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.o.BusyInterval, w.o.IdleInterval = 0, 0 // the default pace
		d := w.start()
		for i := range 5 {
			w.put("a")
			w.pass(2 * time.Minute)
			w.table.Roll(w.shard(i)) // of a stream that is idle
			w.pass(2 * time.Minute)
			w.put("a", "b")
			w.pass(1100 * time.Millisecond) // the longest interval
			w.once(0)
		}
		d.end()
	})
}

func TestAChildWaitsForItsParent(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		release := make(chan struct{})
		w.handle = func(_ context.Context, name string) error {
			if name == "a2" {
				<-release
			}
			return nil
		}
		d := w.start()
		w.put("a", "b")
		w.pass(time.Second)
		w.put("a", "b")
		left, right := w.table.Split(w.shard(0))
		w.put("a", "b")
		w.pass(2 * time.Minute)
		w.wantHandled("while the parent is not settled", "a1 b1 b2")
		if n := len(w.calls("GetRecords", left)) + len(w.calls("GetRecords", right)); n != 0 {
			w.Errorf("%d calls for the children meanwhile", n)
		}
		close(release)
		w.pass(2 * time.Second)
		w.once(0)
		d.end()
	})
}

func TestATrimmedParentBlocksNoChild(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.put("a")
		w.table.Roll(w.shard(0))
		w.svc.Advance(25 * time.Hour)
		w.put("a")
		d := w.start()
		w.pass(2 * time.Second)
		w.wantHandled("without the parent", "a2")
		d.end()
	})
}

func TestAChildListedLateIsRead(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
		d := w.start()
		w.put(keys(20)...)
		w.pass(time.Second)
		w.table.Hide(w.table.Roll(w.shard(0)), 8)
		w.table.Roll(w.shard(1)) // found all the same
		w.put(keys(20)...)
		w.pass(2 * time.Second)
		n := len(strings.Fields(w.handled()))
		if n <= 20 || n >= 40 {
			w.Errorf("%d of 40 changes were handled: want those of the child that is shown", n)
		}
		w.pass(3 * time.Minute)
		w.once(0)
		d.end()
	})
}

func TestEveryGenerationIsRead(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		generations := func(wait time.Duration) {
			for range 6 {
				w.put("a", "b")
				w.pass(wait)
				w.table.Roll(w.shard(len(w.table.Shards()) - 1))
			}
		}
		generations(0) // before anybody reads
		d := w.start()
		generations(700 * time.Millisecond)
		generations(0) // faster than anybody reads
		w.pass(10 * time.Second)
		w.once(0)
		d.end()
	})
}

func TestAParentListedLateIsReadOnce(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.put(keys(5)...)
		w.table.Split(w.shard(0))
		w.put(keys(5)...)
		d := w.start()
		w.pass(3 * time.Second)
		d.end()
		w.table.Hide(w.shard(0), 3)
		d = w.start()
		w.put(keys(5)...)
		w.pass(5 * time.Minute)
		w.once(0)
		d.end()
	})
}

func TestNoRecordOvertakesThoseOfAnAncestor(t *testing.T) {
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

func TestRandomSplitsLoseNothing(t *testing.T) {
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
