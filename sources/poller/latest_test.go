package poller_test

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/streamtest"
)

// Users of other tools met this failure: records are lost after a start at
// LATEST.

func TestLatestReadsChildrenFromTheirStart(t *testing.T) {
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

func TestLatestOnANewStreamLosesNothing(t *testing.T) {
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

func TestLatestSurvivesARestartBeforeTheFirstRecord(t *testing.T) {
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

func TestLatestLosesNothingOverRestarts(t *testing.T) {
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
