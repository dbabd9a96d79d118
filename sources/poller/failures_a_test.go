package poller_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/streamtest"
)

// What broke for users of other tools, one function each: discovery of shards
// and their lineage.

func TestF001ClosedShardsChildrenAreRead(t *testing.T) {
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

func TestF002DiscoveryRunsOnATimer(t *testing.T) {
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
func TestF002ParentReadByAnother(t *testing.T) {
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

func TestF003NewShardBesideOpenOnes(t *testing.T) {
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

func TestF004ManyPagesOfShards(t *testing.T) {
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

func TestF005PagingEnds(t *testing.T) {
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

func TestF006FailedPageIsAskedForAgain(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	inWorld(t, streamtest.TableOptions{Shards: 9}, func(w *world) {
		w.svc.SetLimits(streamtest.Limits{PageShards: 2})
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

func TestF007DescribeStreamIsPaced(t *testing.T) {
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

func TestF008ChildWaitsForItsParent(t *testing.T) {
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

func TestF009TrimmedParentBlocksNobody(t *testing.T) {
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

func TestF010ChildrenShownLate(t *testing.T) {
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

func TestF011ChildrenAreReadFromTheirStart(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.o.Start = poller.Latest
		w.put("old")
		w.pass(time.Hour)
		d := w.start()
		w.put(keys(5)...)
		left, right := w.table.Split(w.shard(0))
		w.put(keys(5)...)
		w.pass(3 * time.Second)
		w.once(1)
		for _, id := range []string{left, right} {
			if its := w.iterators(id); its != "TRIM_HORIZON" {
				w.Errorf("iterators of a child: %s", its)
			}
		}
		d.end()
	})
}

func TestF012EveryGenerationIsRead(t *testing.T) {
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

func TestF013ParentShownAfterItsChildren(t *testing.T) {
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

func TestF014PositionsAreOfOneStream(t *testing.T) {
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

func TestF015ListingsInAnyOrder(t *testing.T) {
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

func TestF016UnknownShardEndsAlone(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
		d := w.start()
		w.put(keys(20)...)
		w.pass(time.Second)
		d.end()
		gone := w.shard(0)
		w.table.Roll(gone)
		w.table.Trim(gone, -1) // of a closed shard: it is no more
		d = w.start()
		w.put(keys(20)...)
		w.pass(10 * time.Second)
		w.once(0)
		if len(w.gaps) != 1 || w.gaps[0].ShardID != gone || !w.gaps[0].Gone {
			w.Errorf("gaps: %v, want one of the shard that is no more", w.gaps)
		}
		before := len(w.calls("GetShardIterator", gone))
		w.pass(5 * time.Minute)
		if n := len(w.calls("GetShardIterator", gone)) - before; n != 0 {
			w.Errorf("%d more calls for it", n)
		}
		d.end()
	})
}
