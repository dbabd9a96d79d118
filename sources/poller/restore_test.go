//go:build integration || long

package poller

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
)

// Streams that came and went while nothing ran are read one behind the other,
// what is left of the old one first, and whatever the start says now.
func TestARestartBehindSeveralStreams(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, at := range []string{"", Latest, TrimHorizon} {
		t.Run("start "+at, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), state.NewMemory()
				a := s.filled("a", 1)
				first := s.enable("orders", a)
				var got sink
				r := start(t, s, got.handle, testOptions(store, "orders"))
				pass(time.Second)
				r.mustEnd()
				s.put(a, "k", "k")
				s.disable(first)
				a2 := s.filled("a2", 1)
				a2.parent, a2.closed = "a", true
				s.with(func() { first.shards = append(first.shards, a2) })
				for _, id := range []string{"b", "c"} {
					pass(time.Minute)
					s.disable(s.enable("orders", s.filled(id, 2)))
				}
				pass(time.Hour)
				s.enable("orders", s.filled("d", 1))
				pass(time.Hour)

				o := slowly(testOptions(store, "orders"))
				o.Start = at
				r = start(t, s, got.handle, o)
				pass(time.Minute)
				want(t, "handled", got.all(), "a/1 a/2 a/3 a2/1 b/1 b/2 c/1 c/2 d/1")
				want(t, "replacements", fmt.Sprint(strings.Count(r.log(), "replaced")), "3")
				want(t, "other gaps", fmt.Sprint(strings.Count(r.log(), "gap")), "0")
				r.mustEnd()

				// And now it is an ordinary stream.
				r = start(t, s, got.handle, o)
				pass(time.Second)
				r.unready("")
				pass(9 * time.Second)
				calls := s.describes(first.arn)
				pass(time.Hour)
				want(t, "calls for the first stream after a look", fmt.Sprint(s.describes(first.arn)-calls), "0")
				r.mustEnd()
				pass(24 * time.Hour)
				r = start(t, s, got.handle, o)
				pass(time.Hour)
				r.unready("")
				want(t, "calls for the first stream a day later", fmt.Sprint(s.describes(first.arn)-calls), "0")
				want(t, "handled", got.all(), "a/1 a/2 a/3 a2/1 b/1 b/2 c/1 c/2 d/1")
				r.mustEnd()
			})
		})
	}
}

// That a stream was replaced is told once, also when the poller is started
// again before the new stream's turn has come.
func TestAReplacementIsToldOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		old := s.enable("orders", s.filled("a", 1))
		got := &gate{shard: "a", open: make(chan struct{})}
		r := start(t, s, got.handle, withBox(store, "orders"))
		pass(time.Minute)
		s.disable(old)
		s.enable("orders", s.filled("b", 1))
		pass(time.Minute)
		want(t, "hooks", r.log(), "started a, replaced")
		r.mustEnd()
		r = start(t, s, got.handle, withBox(store, "orders"))
		pass(time.Minute)
		r.unready("was replaced by")
		close(got.open)
		pass(time.Minute)
		want(t, "hooks", r.log(), "started a, finished a, started b")
		r.acknowledge()
		r.mustEnd()
		r = start(t, s, got.handle, withBox(store, "orders"))
		pass(time.Minute)
		r.unready("")
		r.mustEnd()
		want(t, "handled", got.all(), "a/1 b/1")
	})
}

// What the service has forgotten is a gap of each unfinished shard.
func TestARestartBehindAStreamThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		first := s.enable("orders", s.filled("a", 1), s.filled("a2", 0))
		var got sink
		r := start(t, s, got.handle, testOptions(store, "orders"))
		pass(time.Second)
		r.mustEnd()
		s.disable(first)
		pass(25 * time.Hour)
		s.with(func() { delete(s.streams, first.arn) })
		s.enable("orders", s.filled("b", 1))
		r = start(t, s, got.handle, testOptions(store, "orders"))
		pass(time.Minute)
		want(t, "handled", got.all(), "a/1 b/1")
		want(t, "old positions", storedOf(t, store, first.arn), "a@1! a2@!")
		for _, gap := range []string{"gap a 1", "gap a2 ", "replaced"} {
			if !strings.Contains(r.log(), gap) {
				t.Errorf("no %q in: %s", gap, r.log())
			}
		}
		r.mustEnd()
	})
}

// Of a stream that is read a day after it was made, something may be missing.
func TestARestartBehindAStreamOfTheDayBefore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		first := s.enable("orders", s.filled("a", 1))
		var got sink
		r := start(t, s, got.handle, testOptions(store, "orders"))
		pass(time.Second)
		r.mustEnd()
		s.disable(first)
		second := s.enable("orders", s.filled("b", 1))
		pass(25 * time.Hour)
		s.with(func() { second.shards[0] = &stubShard{id: "b2", parent: "b"} })
		r = start(t, s, got.handle, testOptions(store, "orders"))
		pass(time.Minute)
		r.unready("shard b: all records were trimmed before they were read")
		r.acknowledge()
		r.unready("")
		r.mustEnd()
		r = start(t, s, got.handle, testOptions(store, "orders"))
		pass(time.Minute)
		r.unready("")
		r.mustEnd()
	})
}

// A table that was read before and has no stream at the start is no mistake:
// it is waited for, and what is left of its last stream is read. A table that
// was never read is refused.
func TestARestartWithoutATable(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*stub)
		says   string
	}{
		{"gone", func(s *stub) { delete(s.tables, "orders") }, "table orders is gone"},
		{"no stream", func(s *stub) { s.tables["orders"] = "" }, "table orders has no stream"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), state.NewMemory()
				a := s.filled("a", 1)
				first := s.enable("orders", a)
				var got sink
				r := start(t, s, got.handle, testOptions(store, "orders"))
				pass(time.Second)
				r.mustEnd()
				s.put(a, "k")
				s.disable(first)
				s.with(func() { c.change(s) })
				r = start(t, s, got.handle, testOptions(store, "orders"))
				pass(5 * time.Second)
				want(t, "handled", got.all(), "a/1 a/2")
				r.unready(c.says)
				s.enable("orders", s.filled("b", 1))
				pass(time.Minute)
				want(t, "handled", got.all(), "a/1 a/2 b/1")
				r.mustEnd()

				s.with(func() { c.change(s) })
				o := testOptions(store, "orders")
				o.Application = "another"
				if err := start(t, s, got.handle, o).end(); err == nil {
					t.Error("a table that was never read is no mistake")
				}
			})
		})
	}
}

// One stream must not be read by two names.
func TestAnOldStreamNamedBesideItsTable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		first := s.enable("orders", s.filled("a", 1))
		var got sink
		r := start(t, s, got.handle, testOptions(store, "orders"))
		pass(time.Second)
		r.mustEnd()
		s.disable(first)
		second := s.enable("orders", s.filled("b", 1))
		for _, arn := range []string{first.arn, second.arn} {
			o := testOptions(store, "orders")
			o.Streams = append(o.Streams, Stream{ARN: arn})
			if err := start(t, s, got.handle, o).end(); err == nil || !strings.Contains(err.Error(), "Name it once") {
				t.Errorf("%s: %v", arn, err)
			}
		}
	})
}

// A process killed before or after any of its writes, while a table's stream
// is replaced twice, loses nothing and reorders no item.
func TestKilledAnywhereWhileAStreamIsReplaced(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, after := range []bool{false, true} {
		for _, down := range []time.Duration{0, time.Minute} { // before it is started again
			at := 1
			if !after && down > 0 {
				at = 2 // else nothing is known of the first stream
			}
			for killedAt(t, at, after, down) {
				at++
			}
			if at < 15 {
				t.Errorf("only %d writes", at)
			}
		}
	}
}

// replacements counts the gaps between streams among the dead letters.
func replacements(t *testing.T, l state.Letters) (n int) {
	t.Helper()
	gaps, err := deadletter.NewBox(l, "sluice").Gaps(t.Context())
	if err != nil {
		t.Error(err)
	}
	for _, g := range gaps {
		if g.Next != "" {
			n++
		}
	}
	return n
}

func killedAt(t *testing.T, at int, after bool, down time.Duration) (died bool) {
	where := fmt.Sprintf("killed at write %d (after it: %v) and down for %v", at, after, down)
	bubble(t, func(t *testing.T) {
		s, memory := newStub(), state.NewMemory()
		a := &stubShard{id: "a"}
		s.put(a, "x", "y", "x", "y")
		first := s.enable("orders", a)
		go func() { // what happens at the service
			time.Sleep(2 * time.Second)
			a2 := &stubShard{id: "a2", parent: "a"}
			s.put(a2, "x", "y", "x")
			s.with(func() { a.closed, first.shards = true, append(first.shards, a2) })
			time.Sleep(time.Second)
			s.disable(first)
			b := &stubShard{id: "b"}
			s.put(b, "x", "y")
			second := s.enable("orders", b)
			time.Sleep(time.Second)
			s.disable(second)
			c := &stubShard{id: "c"}
			s.put(c, "y", "x")
			s.enable("orders", c)
		}()

		// Each item's records in the order of its changes.
		orders := map[string][]string{"x": {"a/1", "a/3", "a2/1", "a2/3", "b/1", "c/2"}, "y": {"a/2", "a/4", "a2/2", "b/2", "c/1"}}
		var mu sync.Mutex
		done := map[string]int{}
		var m *mortal
		handle := func(ctx context.Context, rec *sluice.Record) error {
			key, _ := rec.Keys.Lookup("id")
			id := key.Str()
			if id == "x" {
				if err := sleep(ctx, time.Second); err != nil {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if m.killed() {
				return errKilled
			}
			for n, name := range orders[id] {
				if name == short(rec) {
					if n > done[id] {
						t.Errorf("%s: %s was handled before %s", where, name, orders[id][done[id]])
					}
					done[id] = max(done[id], n+1)
				}
			}
			return nil
		}
		run := func(at int) {
			m = &mortal{Memory: memory, left: at - 1, after: after}
			o := withBox(m, "orders")
			o.Grace, o.BusyInterval = time.Millisecond, time.Second
			r := start(t, s, handle, o)
			for end := time.Now().Add(time.Minute); !m.killed() && time.Now().Before(end); {
				pass(200 * time.Millisecond)
			}
			r.end() //nolint:errcheck // it may have been killed
			m.Close()
		}
		run(at)
		died = m.killed()
		pass(down)
		run(1000)
		want(t, where+": dead letters", fmt.Sprint(replacements(t, memory)), "2")
		for id, n := range done {
			if n != len(orders[id]) {
				t.Errorf("%s: of item %s only %v were handled", where, id, orders[id][:n])
			}
		}
	})
	return died
}

// A stream that was left behind is not forgotten: after a restart what it
// still has comes first, and what it had is a gap when the service has
// forgotten it. A new stream that is a day old waits for nothing: what was before
// it is trimmed.
func TestARestartBesideAStreamLeftBehind(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, how := range []string{"known", "gone"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), state.NewMemory()
				old := s.enable("orders", s.filled("a", 2))
				got := &gate{shard: "a", open: make(chan struct{})}
				r := start(t, s, got.handle, slowly(testOptions(store, "orders")))
				pass(time.Minute)
				s.disable(old)
				b := s.filled("b", 1)
				renewed := s.enable("orders", b)
				pass(23 * time.Hour)
				want(t, "handled", got.all(), "b/1")
				r.mustEnd()
				close(got.open)
				s.put(b, "k")
				if how == "gone" {
					s.with(func() { delete(s.streams, old.arn) })
					pass(3 * time.Hour)
				}
				r = start(t, s, got.handle, slowly(testOptions(store, "orders")))
				pass(time.Minute)
				if how == "known" {
					want(t, "handled", got.all(), "b/1 a/1 a/2 b/2")
				} else {
					want(t, "handled", got.all(), "b/1 b/2")
					if log := r.log(); !strings.Contains(log, "gone a, gap a , finished a") {
						t.Errorf("hooks: %s", log)
					}
				}
				r.mustEnd()
				want(t, "old positions", storedOf(t, store, old.arn)[:2], "a@")
				want(t, "new positions", storedOf(t, store, renewed.arn), "b@2")
			})
		})
	}
}

// Also when the new stream is almost as old as its records can be, what is
// left of the old one comes first.
func TestARestartLongAfterAStreamWasReplaced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := s.filled("a", 1)
		old := s.enable("orders", a)
		got := &gate{shard: "a", open: make(chan struct{})}
		r := start(t, s, got.handle, testOptions(store, "orders"))
		r.mustEnd()
		s.put(a, "k", "k")
		s.disable(old)
		s.enable("orders", s.filled("b", 1))
		pass(23 * time.Hour)
		r = start(t, s, got.handle, testOptions(store, "orders"))
		pass(5 * time.Minute)
		close(got.open)
		pass(time.Minute)
		want(t, "handled", got.all(), "a/1 a/2 a/3 b/1")
		r.mustEnd()
	})
}
