package poller_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/streamtest"
)

// Users of other tools met these failures: records are repeated or skipped when
// an iterator expires, or an expired iterator is used again and again.

const expiry = 16 * time.Minute // of an iterator, surely

func TestReadingGoesOnAfterEmptyPages(t *testing.T) {
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

func TestAnExpiredIteratorIsReplaced(t *testing.T) {
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

func TestExpiryNeitherRepeatsNorSkips(t *testing.T) {
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

func TestExpiryBeforeAnyRecordLosesNothing(t *testing.T) {
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

func TestAHandlerMayOutliveItsIterator(t *testing.T) {
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

func TestEachExpiredIteratorIsUsedOnce(t *testing.T) {
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
