package poller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
)

// callers is shards that call as fast as they may.
type callers struct {
	c  *calls
	mu sync.Mutex
	at []time.Time
}

// run has n shards wait for their turn, then for pause, again and again; it
// returns how often each has called in d.
func (cs *callers) run(t *testing.T, n int, backlog bool, pause, d time.Duration) func() []int {
	counts := make([]int, n)
	ctx, cancel := context.WithTimeout(t.Context(), d)
	var shards sync.WaitGroup
	for i := range n {
		shards.Go(func() {
			tn := newTurn()
			for cs.c.wait(ctx, tn, backlog) == nil {
				counts[i]++
				cs.mu.Lock()
				cs.at = append(cs.at, time.Now())
				cs.mu.Unlock()
				if sleep(ctx, pause) != nil {
					return
				}
			}
		})
	}
	return func() []int {
		shards.Wait()
		cancel()
		return counts
	}
}

// most returns the largest number of calls within a second.
func (cs *callers) most() (most int) {
	slices.SortFunc(cs.at, time.Time.Compare)
	first := 0
	for i, at := range cs.at {
		for at.Sub(cs.at[first]) >= time.Second {
			first++
		}
		most = max(most, i+1-first)
	}
	return most
}

// The calls of a table stay within its budget, and are shared evenly.
func TestCallsOfATable(t *testing.T) {
	for _, c := range []struct{ rate, shards int }{{1000, 300}, {1000, 1500}, {10, 3}, {1, 2}, {7, 1}} {
		bubble(t, func(t *testing.T) {
			cs := callers{c: newCalls(c.rate)}
			counts := cs.run(t, c.shards, true, 0, 30*time.Second)()
			if most, limit := cs.most(), c.rate+1+c.rate/50; most > limit {
				t.Errorf("%+v: %d calls within a second, want %d at most", c, most, limit)
			}
			total := 0
			for _, n := range counts {
				total += n
			}
			if total < 30*c.rate {
				t.Errorf("%+v: %d calls in 30 s", c, total)
			}
			if lo, hi := slices.Min(counts), slices.Max(counts); hi > lo+2+c.rate/50 { // one may be alone at first
				t.Errorf("%+v: a shard made %d calls, another %d", c, lo, hi)
			}
		})
	}
}

// A shard with a backlog takes what the others leave, and is not starved by
// them.
func TestBacklogYields(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs := callers{c: newCalls(100)}
		catchingUp := cs.run(t, 10, true, 0, 20*time.Second)
		time.Sleep(100 * time.Millisecond)
		busy := cs.run(t, 10, false, 200*time.Millisecond, 19*time.Second)
		for i, n := range busy() {
			if n < 90 {
				t.Errorf("busy shard %d: %d calls in 19 s, want 5 a second", i, n)
			}
		}
		for i, n := range catchingUp() {
			if n < 90 {
				t.Errorf("shard %d with a backlog: %d calls in 20 s, want half of 200", i, n)
			}
		}
	})
	bubble(t, func(t *testing.T) {
		cs := callers{c: newCalls(100)}
		catchingUp := cs.run(t, 10, true, 0, 20*time.Second)
		busy := cs.run(t, 200, false, 200*time.Millisecond, 20*time.Second)
		for i, n := range append(catchingUp(), busy()...) {
			if n < 8 || n > 11 {
				t.Errorf("shard %d: %d calls in 20 s of a budget for 10", i, n)
			}
		}
	})
}

func TestCallsEndWithTheirContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCalls(1)
		if err := c.wait(t.Context(), newTurn(), false); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		for range 3 {
			if err := c.wait(ctx, newTurn(), true); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("wait: %v", err)
			}
		}
		start := time.Now()
		if err := c.wait(t.Context(), newTurn(), true); err != nil || time.Since(start) > 701*time.Millisecond {
			t.Errorf("wait: %v after %v: those that gave up took their turn", err, time.Since(start))
		}
	})
}

// A call that nobody waits for counts as one; it goes before nobody.
func TestCallsTry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCalls(100) // one every 10 ms, and one early
		for i, ok := range []bool{true, true, false} {
			if c.try() != ok {
				t.Errorf("call %d at once: %v, want %v", i+1, !ok, ok)
			}
		}
		time.Sleep(10 * time.Millisecond)
		for i, ok := range []bool{true, false} {
			if c.try() != ok {
				t.Errorf("call %d 10 ms later: %v, want %v", i+1, !ok, ok)
			}
		}
		time.Sleep(time.Second)
		c.queues[1].PushBack(newTurn())
		if c.try() {
			t.Error("it went before one that waits")
		}
	})
}

// most returns the largest number of calls of op within a second that shard,
// or any when it is empty, has seen.
func (s *stub) most(op, shard string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cs callers
	for _, c := range s.calls {
		if c.op == op && (shard == "" || c.shard == shard) {
			cs.at = append(cs.at, c.at)
		}
	}
	return cs.most()
}

// An idle shard is polled once a second and a busy one five times. A shard with
// a backlog is polled as often as the table's budget allows. The calls of a
// table stay within the budget, and a second daemon adds none.
func TestCallsStayWithinTheirBudgets(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		const rate = 50
		s, store := newStub(), state.NewMemory()
		idle := crowd(s, "idle", 2, 0, "")
		orders := append(crowd(s, "busy", 4, 0, ""), crowd(s, "late", 5, 2000, "")...)
		s.table("orders", orders...)
		delete(s.tables, "busy")
		delete(s.tables, "late")
		o := testOptions(store, "idle", "orders")
		o.CallsPerTable, o.Limit = rate, 1
		var got sink
		first := start(t, s, got.handle, o)
		second := start(t, s, got.handle, o)
		pass(2 * time.Minute) // until it is idle
		s.with(func() { s.calls = nil })
		for range 30 {
			for _, sh := range orders[:4] {
				s.put(sh, "k")
			}
			pass(time.Second)
		}
		if n := s.most("GetRecords", idle[0].id); n > 2 {
			t.Errorf("an idle shard: %d calls within a second", n)
		}
		if n := s.count("GetRecords", idle[0].id); n < 27 || n > 31 {
			t.Errorf("an idle shard: %d calls in half a minute", n)
		}
		if n := s.most("GetRecords", orders[0].id); n > 6 {
			t.Errorf("a busy shard: %d calls within a second", n)
		}
		if n := s.count("GetRecords", orders[0].id); n < 100 || n > 151 {
			t.Errorf("a busy shard: %d calls in half a minute", n)
		}
		all := s.count("GetRecords", "") - 2*30
		if all < 30*rate*9/10 || all > 30*rate+rate {
			t.Errorf("a table with a backlog: %d calls in half a minute, want %d a second", all, rate)
		}
		for _, sh := range orders[4:] {
			if n, fair := s.count("GetRecords", sh.id), (all-4*150)/5; n < fair*9/10 {
				t.Errorf("%s with a backlog: %d calls in half a minute, want what the others leave, %d", sh.id, n, fair)
			}
		}
		s.with(func() {
			s.calls = slices.DeleteFunc(s.calls, func(c stubCall) bool { return strings.HasPrefix(c.shard, "idle") })
		})
		if n := s.most("GetRecords", ""); n > rate+2 {
			t.Errorf("a table with a backlog: %d calls within a second", n)
		}
		first.mustEnd()
		second.mustEnd()
	})
}

// The listings of a stream of many shards keep to 5 calls a second, pages
// included, with a burst of 5 once.
func TestListingsStayWithinTheirBudget(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		s := newStub()
		s.perPage = 10
		shards := crowd(s, "orders", 300, 0, "")
		for _, sh := range shards[:100] {
			sh.closed = true // each has its children asked for
		}
		var got sink
		o := testOptions(state.NewMemory(), "orders")
		o.BusyInterval = time.Minute
		r := start(t, s, got.handle, o)
		pass(3 * time.Minute)
		if n := s.most("DescribeStream", ""); n > 11 {
			t.Errorf("%d DescribeStream calls within a second", n)
		}
		r.mustEnd()
	})
}

// When many shards end at once, one listing finds the children of all.
func TestManyShardsEndAtOnce(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		s := newStub()
		const n = 400
		parents := crowd(s, "orders", n, 1, "")
		var got sink
		o := testOptions(state.NewMemory(), "orders")
		o.BusyInterval = 10 * time.Second
		r := start(t, s, got.handle, o)
		pass(30 * time.Second)
		children := crowd(s, "child", n, 1, "")
		s.with(func() {
			s.calls = nil
			for i, sh := range parents {
				sh.closed, children[i].parent = true, sh.id
			}
			st := s.streams[stubARN("orders")]
			st.shards = append(st.shards, children...)
		})
		pass(30 * time.Second)
		if all := len(strings.Fields(got.all())); all != 2*n {
			t.Errorf("30 s after %d shards have ended, the children of %d are read", n, all-n)
		}
		if n := s.count("DescribeStream", ""); n > 60 {
			t.Errorf("%d calls found them", n)
		}
		r.mustEnd()
	})
}
