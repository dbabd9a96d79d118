//go:build integration || long

package poller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
)

// most returns the largest number of calls of op within a second that shard,
// or any when it is empty, has seen.
func (s *stub) most(op, shard string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var at []time.Time
	for _, c := range s.calls {
		if c.op == op && (shard == "" || c.shard == shard) {
			at = append(at, c.at)
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	most, first := 0, 0
	for i, t := range at {
		for t.Sub(at[first]) >= time.Second {
			first++
		}
		most = max(most, i+1-first)
	}
	return most
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
		o := atDefaultPace(testOptions(store, "idle", "orders"))
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
		o := atDefaultPace(testOptions(state.NewMemory(), "orders"))
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
