package poller_test

import (
	"context"
	"fmt"
	"github.com/sluicehq/sluice/internal/localtest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/streamtest"
)

// What broke for users of other tools: iterators, closed shards, trimmed data.

const expiry = 16 * time.Minute // of an iterator, surely

func TestF017RecordsOfTheLastPage(t *testing.T) {
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

func TestF018NoCallAfterTheEnd(t *testing.T) {
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

func TestF019PartOfAClosedShardIsNotItsEnd(t *testing.T) {
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

func TestF020EmptyClosedShardsAreFinishedOnce(t *testing.T) {
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

func TestF021EmptyPagesMoveOn(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.svc.Fail(streamtest.Fault{Op: "GetRecords", Times: 50, Empty: true})
		w.put("a")
		d := w.start()
		w.pass(time.Minute)
		w.once(0)
		w.pass(time.Hour) // an open shard never ends
		w.put("a")
		w.pass(2 * time.Second)
		w.once(0)
		if strings.Contains(w.log(), "finished") {
			w.Errorf("events: %s", w.log())
		}
		d.end()
	})
}

func TestF022ExpiredIteratorIsReplaced(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		d := w.start()
		w.put("a", "b")
		w.pass(time.Second)
		last := w.table.Changes()[1].Sequence
		w.svc.Advance(expiry)
		w.put("a", "c")
		w.pass(2 * time.Second)
		w.once(0)
		its := w.calls("GetShardIterator", w.shard(0))
		if it := its[len(its)-1]; it.Iterator != "AFTER_SEQUENCE_NUMBER" || it.Sequence != last {
			w.Errorf("iterator %s %s, want one after the last record read, %s", it.Iterator, it.Sequence, last)
		}
		expired := 0
		for _, c := range w.calls("GetRecords", "") {
			if c.Error == "ExpiredIteratorException" {
				expired++
			}
		}
		if expired != 1 {
			w.Errorf("a dead iterator was used %d times", expired)
		}
		d.end()
	})
}

func TestF023ExpiryNeitherRepeatsNorSkips(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.o.Limit, w.o.Flow.Window = 3, 3
		var blocked atomic.Bool
		blocked.Store(true)
		w.handle = func(context.Context, string) error {
			for blocked.Load() {
				time.Sleep(time.Second)
			}
			return nil
		}
		w.put(keys(20)...) // more than the window and a page take
		d := w.start()
		w.pass(time.Minute)
		w.svc.Advance(expiry)
		w.put(keys(20)...)
		blocked.Store(false)
		w.pass(20 * time.Second)
		w.once(0)
		if its := w.iterators(w.shard(0)); !strings.HasSuffix(its, "AFTER_SEQUENCE_NUMBER") {
			w.Errorf("iterators: %s", its)
		}
		d.end()
	})
}

func TestF024ExpiryBeforeAnyRecord(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		d := w.start()
		w.pass(time.Second)
		for range 3 {
			w.svc.Advance(expiry)
			w.pass(2 * time.Second)
		}
		w.put("a")
		w.pass(2 * time.Second)
		w.once(0)
		for _, c := range w.calls("GetShardIterator", "") {
			if c.Iterator != "TRIM_HORIZON" || c.Error != "" {
				w.Errorf("%+v", c)
			}
		}
		d.end()
	})
}

func TestF025HandlerOutlivesTheIterator(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
		w.o.Limit, w.o.Flow.Window = 1, 2
		slow := ""
		w.handle = func(_ context.Context, name string) error {
			if name == slow {
				time.Sleep(20 * time.Minute)
			}
			return nil
		}
		w.put(keys(20)...)
		slow = fmt.Sprint(w.slowKey(), 2)
		d := w.start()
		w.pass(5 * time.Second)
		w.once(0)
		w.put(keys(20)...)
		w.pass(10 * time.Second)
		other := len(strings.Fields(w.handled()))
		if other < 22 || other > 39 {
			w.Errorf("%d of 40 changes were handled beside a slow handler", other)
		}
		w.pass(20 * time.Minute)
		w.once(0)
		d.end()
	})
}

// slowKey is an item of the first shard that has others behind it there.
func (w *world) slowKey() string {
	for i, c := range w.table.Changes() {
		if c.ShardID == w.shard(0) {
			return fmt.Sprintf("item%d-", i)
		}
	}
	return ""
}

func TestF026ShardGoneWithItsIterator(t *testing.T) {
	inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
		d := w.start()
		w.put(keys(20)...)
		w.pass(time.Second)
		repair := w.svc.Fail(streamtest.Fault{Op: "GetRecords", Shard: w.shard(0), Error: "InternalServerError"})
		gone := w.shard(0)
		w.put(keys(20)...) // of which the shard's own are lost
		w.table.Roll(gone)
		w.svc.Advance(expiry)
		w.table.Trim(gone, -1)
		repair()
		w.put(keys(20)...)
		w.pass(time.Minute)
		lost := 0
		for _, c := range w.table.Changes() {
			if c.Trimmed && c.ShardID == gone {
				lost++
			}
		}
		if n := len(strings.Fields(w.handled())); n != 60-lost/2 {
			w.Errorf("%d changes were handled, want all of 60 but %d", n, lost/2)
		}
		if len(w.gaps) != 1 || !w.gaps[0].Gone || w.gaps[0].ShardID != gone {
			w.Errorf("gaps: %v", w.gaps)
		}
		d.unready("all records after")
		if n := len(w.calls("GetShardIterator", gone)); n > 6 {
			w.Errorf("%d iterators of a shard that is no more", n)
		}
		d.end()
	})
}

func TestF027TrimmedCheckpoint(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		d := w.start()
		w.put("a", "b")
		w.pass(2 * time.Second)
		d.end()
		w.put("a", "b")
		w.svc.Advance(20 * time.Hour)
		w.put("a", "c")
		w.svc.Advance(5 * time.Hour)
		d = w.start()
		w.put("b")
		w.pass(3 * time.Second)
		w.wantHandled("what is still there", "a1 b1 a3 c1 b3")
		gaps, changes := d.Gaps(), w.table.Changes()
		if len(gaps) != 1 || gaps[0].After != changes[1].Sequence || gaps[0].Before != changes[4].Sequence {
			w.Errorf("gaps: %v, want one from the second change to the fifth", gaps)
		}
		d.end()
	})
}

func TestF028NotReadyAfterALoss(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		d := w.start()
		w.put("a")
		w.pass(2 * time.Second)
		d.end()
		w.put("a")
		w.svc.Advance(25 * time.Hour)
		d = w.start()
		w.put("a")
		w.pass(time.Hour)
		d.unready("acknowledge")
		if err := d.AcknowledgeGaps(w.Context(), d.Gaps()...); err != nil {
			w.Error(err)
		}
		d.unready("")
		d.end()
	})
}

func TestF029LatestOnANewStream(t *testing.T) {
	for _, answer := range []string{"TrimmedDataAccessException", "ValidationException", "ExpiredIteratorException"} {
		t.Run(answer, func(t *testing.T) {
			inWorld(t, streamtest.TableOptions{}, func(w *world) {
				w.o.Start = poller.Latest
				w.svc.Fail(streamtest.Fault{Op: "GetRecords", After: 1, Times: 1, Error: answer})
				d := w.start()
				w.put("a", "b")
				w.pass(10 * time.Second)
				w.once(0)
				d.unready("")
				d.end()
			})
		})
	}
}

func TestF030TrimBetweenTwoPolls(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.o.Limit = 2
		d := w.start()
		trimmed := 0
		for range 20 {
			w.put("a", "b", "c")
			w.pass(100 * time.Millisecond)
			read := len(strings.Fields(w.handled()))
			w.table.Trim(w.shard(0), read-trimmed) // up to where the next poll begins
			trimmed = read
		}
		w.pass(time.Minute) // it is throttled now and then
		w.once(0)
		if len(w.gaps) != 0 {
			w.Errorf("gaps: %v", w.gaps)
		}
		d.end()
	})
}

func TestF031RestartAtLatestBeforeTheFirstRecord(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.o.Start = poller.Latest
		w.put("old")
		w.pass(time.Hour)
		d := w.start()
		w.pass(time.Second)
		d.end()
		w.put("a")
		w.table.Roll(w.shard(0))
		w.put("a")
		w.pass(time.Hour)
		d = w.start()
		w.pass(3 * time.Second)
		w.once(1)
		d.end()
	})
}

func TestF058NoEventIsSkippedAroundTheEnd(t *testing.T) {
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
