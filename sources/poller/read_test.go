package poller

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

func TestReadsRestartsAndRepeatsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a, b := &stubShard{id: "a"}, &stubShard{id: "b"}
		s.table("orders", a)
		s.table("users", b)
		s.put(a, "k", "k", "k")
		var got sink
		r := start(t, s, got.handle, testOptions(store, "orders", "users"))
		pass(time.Second)
		s.put(b, "x")
		pass(time.Second)
		want(t, "handled", got.all(), "a/1 a/2 a/3 b/1")
		if !r.ready() {
			t.Errorf("not ready: %v", r.p.NotReady())
		}
		r.mustEnd()
		want(t, "orders", stored(t, store, "orders"), "a@3")
		want(t, "users", stored(t, store, "users"), "b@1")

		s.put(a, "k")
		r = start(t, s, got.handle, testOptions(store, "orders", "users"))
		pass(time.Second)
		r.mustEnd()
		want(t, "handled after a restart", got.all(), "a/1 a/2 a/3 b/1 a/4")
	})
}

// The last page is handled, and a closed shard is finished once. Only then its
// children are found and read from their beginning.
func TestShardEndsAndChildrenFollow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := &stubShard{id: "a"}
		st := s.table("orders", a)
		s.put(a, "k", "k")
		release := make(chan struct{})
		var got sink
		r := start(t, s, func(ctx context.Context, rec *sluice.Record) error {
			if short(rec) == "a/3" {
				<-release
			}
			return got.handle(ctx, rec)
		}, testOptions(store, "orders"))
		pass(time.Second)
		b, c := &stubShard{id: "b", parent: "a"}, &stubShard{id: "c", parent: "a", closed: true}
		s.put(b, "k")
		s.put(a, "k", "k")
		s.with(func() {
			a.closed = true
			st.shards = append(st.shards, b, c)
		})
		pass(time.Minute)
		want(t, "while the parent's last page is being handled", got.all(), "a/1 a/2")
		want(t, "events", r.log(), "started a")
		close(release)
		pass(2 * time.Second)
		want(t, "handled", got.all(), "a/1 a/2 a/3 a/4 b/1")
		r.mustEnd()
		want(t, "positions", stored(t, store, "orders"), "a@4! b@1 c@!")
		if s.count("DescribeStream", "a") != 1 {
			t.Error("the children of a were not asked for")
		}
		for _, e := range []string{"finished a", "started b", "started c", "finished c", "stopped b"} {
			if strings.Count(r.log(), e) != 1 {
				t.Errorf("%q is not there once: %s", e, r.log())
			}
		}
		want(t, "iterators of b", strings.Join(s.iterators("b"), " "), "TRIM_HORIZON")

		calls := s.count("GetShardIterator", "a") + s.count("GetShardIterator", "c")
		r = start(t, s, got.handle, testOptions(store, "orders"))
		pass(3 * time.Minute)
		r.mustEnd()
		if n := s.count("GetShardIterator", "a") + s.count("GetShardIterator", "c") - calls; n > 1 { // one is the start's trial
			t.Errorf("finished shards were asked for %d iterators after a restart", n)
		}
	})
}

// The service shows children late, and shards appear while none of ours ends.
func TestShardsShownLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a, b := &stubShard{id: "a", closed: true}, &stubShard{id: "b", parent: "a"}
		st := s.table("orders", a, b)
		st.hidden["b"] = true
		s.put(a, "k")
		s.put(b, "k")
		var got sink
		r := start(t, s, got.handle, testOptions(state.NewMemory(), "orders"))
		pass(10 * time.Second)
		s.with(func() { st.hidden["b"] = false })
		pass(10 * time.Second)
		want(t, "handled", got.all(), "a/1 b/1")
		c := &stubShard{id: "c"}
		s.put(c, "k")
		s.with(func() { st.shards = append(st.shards, c) })
		pass(61 * time.Second)
		want(t, "handled", got.all(), "a/1 b/1 c/1")
		r.mustEnd()
	})
}

func TestDescribeStreamPaging(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		var shards []*stubShard
		for i := range 250 {
			shards = append(shards, &stubShard{id: "s" + strings.Repeat("x", i), closed: true})
		}
		st := s.table("orders", shards...)
		var failures int
		s.fail = func(op, _ string) string {
			if failures++; op == "DescribeStream" && failures%3 == 0 {
				return "LimitExceededException"
			}
			return ""
		}
		var last *stubShard
		for _, sh := range shards {
			s.put(sh, "k")
			last = sh
		}
		var got sink
		r := start(t, s, got.handle, testOptions(state.NewMemory(), "orders"))
		pass(30 * time.Second)
		if n := len(strings.Fields(got.all())); n != 250 || !strings.Contains(got.all(), last.id+"/1") {
			t.Errorf("records of %d of 250 shards were handled", n)
		}
		s.with(func() { s.fail, st.loops = nil, true })
		before := s.count("DescribeStream", "")
		pass(2 * time.Minute)
		if n := s.count("DescribeStream", "") - before; n < 2 || n > 1000 {
			t.Errorf("%d listings in two minutes", n)
		}
		r.mustEnd()
	})
	bubble(t, func(t *testing.T) {
		s := newStub()
		st := s.table("orders", &stubShard{id: "a"}, &stubShard{id: "b"})
		st.loops = true
		var got sink
		r := start(t, s, got.handle, testOptions(state.NewMemory(), "orders"))
		pass(10 * time.Second)
		if n := s.count("DescribeStream", ""); n > 5 {
			t.Errorf("%d listings of pages that repeat", n)
		}
		r.mustEnd()
	})
}

// Empty pages with an iterator are normal.
func TestEmptyPagesPrecedeData(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a", empty: 40, closed: true}
		s.table("orders", a)
		s.put(a, "k")
		var got sink
		r := start(t, s, got.handle, atDefaultPace(testOptions(state.NewMemory(), "orders")))
		pass(3 * time.Second)
		want(t, "handled", got.all(), "a/1")
		r.mustEnd()
	})
}

// Lag is the age of the oldest record that is not settled, about 0 on an idle
// shard, and grows when the shard cannot be polled.
func TestLag(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		var fail atomic.Bool
		var got sink
		o := atDefaultPace(testOptions(state.NewMemory(), "orders"))
		o.StallAfter = 30 * time.Second
		r := start(t, s, func(ctx context.Context, rec *sluice.Record) error {
			if fail.Load() {
				return context.DeadlineExceeded
			}
			return got.handle(ctx, rec)
		}, o)
		near := func(what string, want time.Duration) {
			t.Helper()
			if got := r.p.Lag(); got < want || got > want+2*time.Second {
				t.Errorf("%s: lag %v, want %v", what, got, want)
			}
		}
		pass(10 * time.Minute)
		near("idle", 0)
		fail.Store(true)
		s.put(a, "k")
		pass(40 * time.Second)
		near("held", 40*time.Second)
		if r.lag < 38*time.Second {
			t.Errorf("the hook was told a lag of %v", r.lag)
		}
		if len(r.p.Held()) != 1 {
			t.Errorf("held: %v", r.p.Held())
		}
		if reasons := strings.Join(r.p.NotReady(), "\n"); !strings.Contains(reasons, "watermark has not moved") {
			t.Errorf("reasons: %s", reasons)
		}
		if st := r.p.Shards(); len(st) != 1 || st[0].Unsettled != 1 || st[0].Position != "" {
			t.Errorf("shards: %+v", st)
		}
		fail.Store(false)
		pass(time.Minute)
		near("settled", 0)
		s.with(func() { s.fail = func(op, _ string) string { return "InternalServerError:500" } })
		pass(time.Minute)
		near("not polled", time.Minute)
		r.mustEnd()
	})
}
