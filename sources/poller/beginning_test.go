//go:build integration || long

package poller

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// A shard that began while nobody read is a gap if its beginning was trimmed
// before the restart. The rest of the shard that was read is a gap too.
func TestDownForLongerThanADay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newOrdersStream(t)
		w.put(2)
		w.run(t, w.options(), time.Second)
		want(t, "handled", w.handled(), "a1 a2")
		w.put(1)
		w.roll()
		w.put(2)
		pass(3 * time.Hour)
		w.put(2)
		w.roll()
		w.put(1)
		pass(22 * time.Hour)
		r := w.run(t, w.options(), time.Minute)
		want(t, "handled", w.handled(), "b6 b7 c8")
		want(t, "gaps", w.gaps(t), "a after gone, b before")
		for _, g := range r.p.Gaps() {
			if w.names[g.ShardID] == "b" && g.Before != w.table.Shards()[0].First {
				t.Errorf("the gap of b ends before %s, want %s", g.Before, w.table.Shards()[0].First)
			}
		}
	})
}

// A first start reads what there is: that more was there before is no gap,
// also when the first process is killed before it has a position.
func TestFirstStartOnAnOldStream(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration // the kill
		gaps  string
	}{
		{"at once", time.Minute, ""},
		{"two hours later", 2 * time.Hour, "a before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newOrdersStream(t)
				w.put(3)
				pass(4 * time.Hour)
				w.put(1)
				pass(20*time.Hour + time.Minute)
				m := &mortal{Memory: w.store, left: 2} // after the start and the claim
				o := withBox(m, "orders")
				r := start(t, w, func(context.Context, *sluice.Record) error { return errKilled }, o)
				pass(time.Second)
				if sh, err := w.store.Shards(t.Context(), state.Stream{Application: "sluice", ARN: w.table.StreamARN()}); err != nil || len(sh) != 1 || sh[0].Position.Sequence != "" {
					t.Fatalf("stored: %+v, %v", sh, err)
				}
				_ = r.end()
				w.store.Close()
				want(t, "gaps of the first start", w.gaps(t), "")
				pass(c.after)
				o = w.options()
				o.Owner = "second"
				w.run(t, o, time.Minute)
				want(t, "handled", w.handled(), "a4")
				want(t, "gaps", w.gaps(t), c.gaps)
			})
		})
	}
}

// Records written after a start at LATEST are handled or, after a day, reported
// as a gap. Records from before the start were never ours.
func TestLatestAndAnOldBeginning(t *testing.T) {
	for _, c := range []struct {
		name          string
		down          time.Duration
		handled, gaps string
	}{
		{"within a day", 23*time.Hour + 50*time.Minute, "a3 a4", ""},
		{"after a day", 24*time.Hour + 10*time.Minute, "a4", "a before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newOrdersStream(t)
				w.put(1)
				pass(time.Hour + 7*time.Second) // a full minute is taken for a rounded one
				w.put(1)
				pass(time.Minute)
				o := w.options()
				o.Start = Latest
				w.run(t, o, time.Minute)
				want(t, "handled at first", w.handled(), "")
				w.put(1)
				pass(time.Hour)
				w.put(1)
				pass(c.down - time.Hour)
				w.run(t, o, time.Minute)
				want(t, "handled", w.handled(), c.handled)
				want(t, "gaps", w.gaps(t), c.gaps)
			})
		})
	}
}

// Records that a service out of order keeps back for a day are lost. The poller
// reports a gap.
func TestOutageOfADay(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		w := newOrdersStream(t)
		w.put(1)
		pass(time.Minute + 7*time.Second)
		broken := w.Fail(streamtest.Fault{Op: "GetRecords", Error: "InternalServerError"})
		o := w.options()
		o.Start, o.DiscoverEvery = Latest, 10*time.Minute
		r := start(t, w, w.handle, o)
		pass(time.Minute)
		w.put(1)
		pass(24 * time.Hour)
		w.put(1)
		r.unready("no successful poll")
		broken()
		pass(time.Minute)
		r.unready("acknowledge the gap")
		r.mustEnd()
		want(t, "handled", w.handled(), "a3")
		want(t, "gaps", w.gaps(t), "a before")
	})
}

// A poller that runs finds no gaps where there are none, however often shards
// roll and however old they get.
func TestNoGapsWithoutLoss(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		w := newOrdersStream(t)
		o := w.options()
		o.BusyInterval, o.IdleInterval, o.StaleAfter = time.Minute, time.Minute, 5*time.Minute
		o.HeartbeatEvery, o.CheckpointEvery, o.DiscoverEvery = time.Minute, time.Minute, 10*time.Minute
		r := start(t, w, w.handle, o)
		for i := range 20 {
			if i%3 == 0 { // others stay empty
				w.put(2)
			}
			pass(4 * time.Hour)
			if i < 10 { // later one gets old
				w.roll()
			}
		}
		r.unready("")
		r.mustEnd()
		want(t, "handled", w.handled(), "a1 a2 d3 d4 g5 g6 j7 j8 k9 k10 k11 k12 k13 k14")
		want(t, "gaps", w.gaps(t), "")
	})
}

// Records that are trimmed before the first page is read are a gap too. A
// trimmed iterator at LATEST is none.
func TestTrimmedBeforeAnythingIsRead(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	const old = 23*time.Hour + 30*time.Minute
	for _, c := range []struct {
		start         string
		age           time.Duration // of the shard when its records are trimmed
		handled, gaps string
	}{
		{TrimHorizon, old, "a3", "a before"},
		{TrimHorizon, time.Hour, "a3", ""}, // the service loses nothing so early
		{Latest, old, "a3", "a before"},    // they were written after the start
		{Latest, time.Hour, "a3", ""},
	} {
		t.Run(fmt.Sprint(c.start, " ", c.age), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newOrdersStream(t)
				o := w.options()
				o.Start = c.start
				o.HeartbeatEvery, o.CheckpointEvery, o.DiscoverEvery = time.Minute, time.Minute, 10*time.Minute
				broken := w.Fail(streamtest.Fault{Op: "GetRecords", Error: "InternalServerError"})
				r := start(t, w, w.handle, o)
				pass(time.Second)
				w.put(3)
				pass(c.age)
				w.table.Trim(w.open(), 2)
				broken()
				pass(time.Minute)
				r.mustEnd()
				want(t, "handled", w.handled(), c.handled)
				want(t, "gaps", w.gaps(t), c.gaps)
			})
		})
	}
}

// A shard that is gone before any record of it was read is a gap, if it was
// ours to read.
func TestGoneBeforeAnythingWasRead(t *testing.T) {
	for _, c := range []struct {
		name string
		age  time.Duration // of the shard at the first start
		gaps string
	}{
		{"ours", 0, "a gone"},
		{"not ours", 23*time.Hour + 50*time.Minute, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newOrdersStream(t)
				w.put(1)
				a := w.open()
				w.roll()
				w.put(1)
				pass(c.age)
				broken := w.Fail(streamtest.Fault{Shard: a, Error: "InternalServerError"})
				r := start(t, w, w.handle, w.options())
				pass(50 * time.Second)
				w.table.Trim(a, -1)
				broken()
				pass(time.Minute)
				r.mustEnd()
				want(t, "handled", w.handled(), "b2")
				want(t, "gaps", w.gaps(t), c.gaps)
			})
		})
	}
}

// The policy Halt stops before the gap that a shard begins with, too.
func TestHaltAtTheBeginning(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newOrdersStream(t)
		w.run(t, w.options(), time.Second)
		w.put(1)
		pass(time.Hour)
		w.put(1)
		pass(23*time.Hour + time.Minute)
		o := w.options()
		o.Gaps = Halt
		r := start(t, w, w.handle, o)
		pass(time.Minute)
		r.unready("shard " + w.open() + ": halted at a gap")
		r.mustEnd()
		want(t, "handled", w.handled(), "")
		want(t, "gaps", w.gaps(t), "a")
		w.run(t, w.options(), time.Minute)
		want(t, "handled", w.handled(), "a2")
		want(t, "gaps", w.gaps(t), "a before")
	})
}

// Whether a beginning is trimmed is asked until there is an answer; where
// there will be none, the worst is assumed.
func TestBeginningCannotBeTold(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults []streamtest.Fault // the first call is the start's trial
		gaps   string
	}{
		{"all is well", nil, ""},
		{"errors that pass", []streamtest.Fault{{Op: "GetShardIterator", Error: "InternalServerError", After: 1, Times: 5}}, ""},
		{"the iterator expires", []streamtest.Fault{{Op: "GetRecords", Error: "ExpiredIteratorException", After: 1, Times: 3}}, ""},
		{"the iterator is refused", []streamtest.Fault{{Op: "GetRecords", Error: "ValidationException", After: 1, Times: 3}}, ""},
		{"the request is refused once", []streamtest.Fault{{Op: "GetShardIterator", Error: "ValidationException", After: 1, Times: 1}}, ""},
		{"the request is refused now and then", []streamtest.Fault{
			{Op: "GetShardIterator", Error: "ValidationException", After: 1, Times: 1},
			{Op: "GetRecords", Error: "ExpiredIteratorException", After: 1, Times: 1},
			{Op: "GetShardIterator", Error: "ValidationException", After: 2, Times: 1},
		}, ""},
		{"the request is refused again and again", []streamtest.Fault{{Op: "GetShardIterator", Error: "ValidationException", After: 1, Times: 2}}, "a before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newOrdersStream(t)
				w.run(t, w.options(), time.Second)
				pass(10 * time.Hour)
				w.put(1)
				pass(13*time.Hour + 10*time.Minute)
				for _, f := range c.faults {
					w.Fail(f)
				}
				w.run(t, w.options(), time.Minute)
				want(t, "handled", w.handled(), "a1")
				want(t, "gaps", w.gaps(t), c.gaps)
			})
		})
	}
	t.Run("no listing shows the shard", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newOrdersStream(t)
			w.run(t, w.options(), time.Second)
			pass(10 * time.Hour)
			w.put(1)
			pass(13*time.Hour + 10*time.Minute)
			w.table.Hide(w.open(), 5)
			w.run(t, w.options(), time.Minute)
			want(t, "handled", w.handled(), "a1")
			want(t, "gaps", w.gaps(t), "a before")
		})
	})
}
