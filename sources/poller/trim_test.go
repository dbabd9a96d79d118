package poller_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/streamtest"
)

// Users of other tools met these failures: trimmed records are lost without a
// word, or reading stops at a shard that is gone.

func TestAnUnknownShardEndsAlone(t *testing.T) {
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

func TestAShardThatIsGoneIsAGap(t *testing.T) {
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

func TestATrimmedPositionIsAGap(t *testing.T) {
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

func TestHealthIsNotReadyUntilAGapIsAcknowledged(t *testing.T) {
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
		w.pass(10 * time.Minute)
		d.unready("acknowledge")
		if err := d.AcknowledgeGaps(w.Context(), d.Gaps()...); err != nil {
			w.Error(err)
		}
		d.unready("")
		d.end()
	})
}

func TestATrimUpToTheNextPollIsNoGap(t *testing.T) {
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
