//go:build integration || long

package poller_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// A stream that rolls for a week keeps the rows of two days, over restarts, and
// nothing is lost or handled twice.
func TestRowsOfFinishedShards(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
		w.calm()
		d := w.start()
		for n := range 42 {
			w.put(keys(4)...)
			w.pass(3 * time.Hour)
			switch n % 5 {
			case 1:
				d.end()
				w.put(keys(4)...)
				d = w.start()
			case 3:
				d.end()
				w.pass(50 * time.Minute)
				d = w.start()
			}
			w.put(keys(4)...)
			for _, id := range w.open() {
				w.table.Roll(id)
			}
			w.put(keys(4)...)
			w.pass(time.Hour)
			// Two shards in each turn of 4 hours: those of 48 hours, of one until
			// a listing says so twice, and of the turn before and this one.
			if rows := len(w.rows()); rows > 2*(12+1+2) || n > 12 && rows < 2*12 {
				t.Fatalf("%d rows are stored after %d turns", rows, n+1)
			}
		}
		w.once(0)
		d.unready("")
		d.end()
		if _, err := w.store.Start(t.Context(), state.Stream{Application: "sluice", ARN: w.table.StreamARN()}, state.Start{}); err != nil {
			t.Errorf("the start of the stream: %v", err)
		}
	})
}

// A shard that listings leave out is remembered until two days after it was
// closed, however old it is, so that it is not read again when a listing shows
// it. Then it is forgotten when none has shown it for an hour.
func TestHiddenShardIsRemembered(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, open := range []time.Duration{0, 60 * time.Hour} {
		for _, start := range []string{poller.TrimHorizon, poller.Latest} {
			inWorld(t, streamtest.TableOptions{}, func(w *world) {
				w.svc.SetLimits(streamtest.Limits{Retention: 1000 * time.Hour})
				w.calm()
				w.put("a")
				a := w.shard(0)
				w.pass(open)
				w.o.Start = start
				var b string
				if start == poller.Latest { // both are finished unread
					b = w.table.Roll(a)
					w.table.Roll(b)
				}
				d := w.start()
				w.pass(time.Minute)
				if start == poller.TrimHorizon {
					b = w.table.Roll(a)
					w.pass(time.Hour)
					w.table.Roll(b)
				}
				w.pass(5 * time.Minute)
				w.table.Hide(a, 1000_000)
				w.table.Hide(b, 1000_000)
				w.put("a")
				w.pass(46 * time.Hour)
				d.end()
				d = w.start()
				w.pass(50 * time.Minute)
				if !slices.Contains(w.rows(), a) {
					t.Errorf("open for %v, %s: forgotten after 47 hours", open, start)
				}
				handled := w.handled()
				for _, hidden := range []int{0, 1, 14} {
					w.table.Hide(a, hidden)
					w.pass(3 * time.Hour)
					if !slices.Contains(w.rows(), a) {
						t.Errorf("open for %v, %s: forgotten when %d listings left it out", open, start, hidden)
					}
				}
				w.wantHandled("when it is listed again", handled)
				w.table.Hide(a, 1000_000)
				w.pass(50 * time.Minute)
				if !slices.Contains(w.rows(), a) {
					t.Errorf("open for %v, %s: forgotten within the hour", open, start)
				}
				w.pass(30 * time.Minute)
				if slices.Contains(w.rows(), a) {
					t.Errorf("open for %v, %s: still stored", open, start)
				}
				w.wantHandled("when it is forgotten", handled)
				d.end()
			})
		}
	}
}

// What a stream says that is denied, or seems to have no shards, is not
// believed; nor is a shard forgotten before its children are settled.
func TestRowsAreKept(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for name, trouble := range map[string]func(w *world, b string) (mend func()){
		"the stream is denied": func(w *world, b string) func() {
			w.table.Roll(b)
			w.pass(46 * time.Hour)
			return w.svc.Fail(streamtest.Fault{Op: "DescribeStream", Error: "ResourceNotFoundException"})
		},
		"shards that are read are left out": func(w *world, b string) func() {
			c := w.table.Roll(b)
			w.pass(time.Hour)
			w.table.Hide(c, 1000_000)
			w.pass(46 * time.Hour)
			return func() { w.table.Hide(c, 0) }
		},
		"its child is open": func(w *world, b string) func() {
			w.pass(46 * time.Hour)
			return func() { w.table.Roll(b) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
				w.calm()
				d := w.start()
				w.put("a")
				a := w.shard(0)
				b := w.table.Roll(a)
				w.put("a")
				w.pass(time.Hour)
				mend := trouble(w, b)
				w.pass(10 * time.Hour)
				if !slices.Contains(w.rows(), a) {
					t.Error("forgotten")
				}
				mend()
				w.pass(3 * time.Hour)
				if slices.Contains(w.rows(), a) {
					t.Error("not forgotten when all is well")
				}
				w.once(0)
				d.end()
			})
		})
	}
}

// A store that fails to forget is told so again with each listing.
func TestForgettingFails(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.calm()
		var mended atomic.Bool
		var told atomic.Int32
		w.o.Store = &flaky{Store: w.store, fail: func(call string) error {
			if !mended.Load() && call == "forget" {
				return errStore
			}
			return nil
		}}
		w.o.Hooks.Failed = func(s poller.Shard, action string, err error, _ time.Duration) {
			if action == "forget" && err == errStore && s.StreamARN == w.table.StreamARN() {
				told.Add(1)
			}
		}
		d := w.start()
		w.put("a")
		a := w.shard(0)
		b := w.table.Roll(a)
		w.put("a")
		w.pass(time.Minute)
		w.table.Roll(b)
		w.pass(51 * time.Hour)
		if len(w.rows()) != 3 || told.Load() < 10 {
			t.Errorf("%d rows, told %d times", len(w.rows()), told.Load())
		}
		d.unready("")
		mended.Store(true)
		w.pass(6 * time.Minute)
		if rows := w.rows(); slices.Contains(rows, a) || len(rows) != 2 {
			t.Errorf("rows: %s", strings.Join(rows, " "))
		}
		w.once(0)
		d.end()
	})
}

// manyWorkers is a store that several processes share.
type manyWorkers struct{ state.Store }

func (manyWorkers) SilentAfter() time.Duration { return time.Hour }

// A worker of a shared store seldom reads the stored shards. It forgets rows all the same.
func TestRowsOfASharedStore(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.calm()
		w.o.Store, w.o.DiscoverEvery = manyWorkers{w.store}, time.Minute
		d := w.start()
		w.put("a")
		a := w.shard(0)
		b := w.table.Roll(a)
		w.put("a")
		w.pass(time.Minute)
		w.table.Roll(b)
		w.pass(51 * time.Hour)
		if rows := w.rows(); len(rows) != 2 || slices.Contains(rows, a) {
			t.Errorf("rows: %s", strings.Join(rows, " "))
		}
		w.once(0)
		d.end()
	})
}
