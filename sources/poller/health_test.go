//go:build integration || long

package poller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
)

// What waits for most of its life in the stream makes the poller unready, and
// nothing else of its shard does not hide that.
func TestNearLoss(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		var fail atomic.Bool
		fail.Store(true)
		o := testOptions(state.NewMemory(), "orders")
		o.StallAfter, o.StaleAfter = 1000*time.Hour, time.Hour
		o.BusyInterval, o.IdleInterval, o.HeartbeatEvery, o.CheckpointEvery = time.Minute, time.Minute, time.Minute, time.Minute // hours pass
		r := start(t, s, func(context.Context, *sluice.Record) error {
			if fail.Load() {
				return sluice.RetryAfter(time.Minute, errors.New("not yet"))
			}
			return nil
		}, o)
		pass(time.Minute)
		s.put(a, "k")
		pass(19 * time.Hour)
		r.unready("")
		pass(20 * time.Minute)
		r.unready("table orders shard a: the oldest record that is not settled is 19h20m0s old, and the stream forgets it after 24h0m0s")
		fail.Store(false)
		pass(5 * time.Minute)
		r.unready("")
		pass(48 * time.Hour) // idle
		r.unready("")
		r.mustEnd()
	})
}

// A watermark that stands still is told with what to look at, and only while
// something waits.
func TestStall(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		block := make(chan struct{})
		r := start(t, s, func(_ context.Context, rec *sluice.Record) error {
			if strings.HasSuffix(string(rec.Sequence), "1") {
				<-block
			}
			return nil
		}, atDefaultPace(testOptions(state.NewMemory(), "orders")))
		pass(time.Hour)
		r.unready("")
		s.put(a, "k")
		for range 5 { // others go on past it
			pass(time.Minute)
			s.put(a, "other")
		}
		pass(time.Minute)
		r.unready("the watermark has not moved for 5m59s with 6 records waiting: see which items are held")
		close(block)
		pass(time.Second)
		r.unready("")
		r.mustEnd()
	})
}

// A shard that is not read because a budget of its flow is used up says which, and
// Park ends it.
func TestFullBudgetIsNamed(t *testing.T) {
	for why, o := range map[string]flow.Options{
		"2 records that failed, or wait behind one that did, take more than the 1000 bytes of HeldBytes": {HeldBytes: 1000},
		"more records than the 3 of MaxAhead follow one that is not settled":                             {MaxAhead: 3},
	} {
		bubble(t, func(t *testing.T) {
			s := newStub()
			a := &stubShard{id: "a"}
			s.table("orders", a)
			store := state.NewMemory()
			to := testOptions(store, "orders")
			to.Flow.HeldBytes, to.Flow.MaxAhead = o.HeldBytes, o.MaxAhead
			box := deadletter.NewBox(store, "sluice")
			to.Flow.DeadLetter = box
			r := start(t, s, func(_ context.Context, rec *sluice.Record) error {
				if n := strings.TrimPrefix(string(rec.Sequence), stubBase); n == "1" || n == "2" {
					return errors.New("down")
				}
				return nil
			}, to)
			pass(time.Minute)
			s.put(a, "k1", "k2")
			pass(time.Minute)
			for range 2 { // others go on past them, until no more are read
				s.put(a, "k3", "k4", "k5")
				pass(time.Minute)
			}
			pass(time.Minute)
			r.unready("")
			pass(4 * time.Minute)
			r.unready(" records waiting, and nothing was read for ")
			r.unready("because " + why + ": see which items are held")
			if n, pending := r.p.Park("another", false); n+pending != 0 {
				t.Errorf("%d parked of a route that there is not", n)
			}
			if n, pending := r.p.Park("test", false); n != 2 || pending != 0 {
				t.Errorf("%d parked, %d pending, want 2 parked", n, pending)
			}
			pass(time.Minute)
			r.unready("")
			want(t, "stored", stored(t, store, "orders"), "a@8")
			if counts, err := box.Counts(t.Context()); err != nil || len(counts) != 1 || counts[0].N != 2 {
				t.Errorf("dead letters %+v, %v", counts, err)
			}
			r.mustEnd()
		})
	}
}

// The watermark of a shard that is not read may move all the same, as one of the
// held items is settled.
func TestFullBudgetBehindAMovingWatermark(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		o := testOptions(state.NewMemory(), "orders")
		o.Flow.HeldBytes = 1000
		var mended atomic.Bool
		r := start(t, s, func(_ context.Context, rec *sluice.Record) error {
			if n := strings.TrimPrefix(string(rec.Sequence), stubBase); n == "1" && !mended.Load() || n == "2" || n == "3" {
				return errors.New("down")
			}
			return nil
		}, o)
		pass(time.Minute)
		s.put(a, "k1", "k2", "k3")
		pass(10 * time.Second)
		s.put(a, "k4")
		pass(4 * time.Minute)
		mended.Store(true)
		pass(time.Minute)
		r.unready("")
		pass(time.Minute)
		r.unready("more than the 1000 bytes of HeldBytes")
		_ = r.end()
	})
}

func TestLineageHook(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a", closed: true}
		b := &stubShard{id: "b", parent: "a"}
		s.table("orders", a, b)
		s.put(a, "k")
		var last atomic.Value
		o := testOptions(state.NewMemory(), "orders")
		o.Hooks.Lineage = func(l Lineage) { last.Store(l) }
		block := make(chan struct{})
		r := start(t, s, func(context.Context, *sluice.Record) error { <-block; return nil }, o)
		expect := func(want Lineage) {
			t.Helper()
			want.Table, want.StreamARN = "orders", stubARN("orders")
			if got := last.Load().(Lineage); got != want {
				t.Errorf("lineage %+v, want %+v", got, want)
			}
		}
		known := func(want ...KnownShard) {
			t.Helper()
			for i := range want {
				want[i].Shard.Table, want[i].Shard.StreamARN = "orders", stubARN("orders")
			}
			if got := r.p.Lineage(); !slices.Equal(got, want) {
				t.Errorf("known shards %+v, want %+v", got, want)
			}
		}
		pass(2 * time.Minute)
		expect(Lineage{Reading: 1, Waiting: 1})
		known(KnownShard{Shard: Shard{ID: "a"}, Closed: true}, KnownShard{Shard: Shard{ID: "b"}, Parent: "a"})
		close(block)
		pass(2 * time.Minute)
		expect(Lineage{Reading: 1, Finished: 1})
		known(KnownShard{Shard: Shard{ID: "a"}, Closed: true, Settled: true}, KnownShard{Shard: Shard{ID: "b"}, Parent: "a"})
		r.mustEnd()
		expect(Lineage{})
	})
}
