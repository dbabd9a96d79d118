package poller

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
			t.Errorf("not ready: %v", r.p.Health().Reasons)
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

// F017, F018, F008, F011, F001, F020: the last page is handled, a closed shard
// is finished once, and only then its children are found and read from their
// beginning.
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

// F002, F003, F010: children that the service shows late, and shards that
// appear without a shard of ours ending.
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

// F004, F005, F006, F007.
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

// F021: empty pages with an iterator are normal.
func TestEmptyPagesPrecedeData(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a", empty: 40, closed: true}
		s.table("orders", a)
		s.put(a, "k")
		var got sink
		r := start(t, s, got.handle, testOptions(state.NewMemory(), "orders"))
		pass(3 * time.Second)
		want(t, "handled", got.all(), "a/1")
		r.mustEnd()
	})
}

// F022, F023, F025, F057: a window full for longer than an iterator lives
// bounds what is fetched and costs a new iterator behind the last record read.
func TestIteratorExpiresBehindASlowHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		release := make(chan struct{})
		var got sink
		o := testOptions(state.NewMemory(), "orders")
		o.Limit, o.Flow.Window, o.Flow.StuckAfter = 2, 2, time.Hour
		o.StartTimeout = time.Second
		s.put(a, "k", "k", "k", "k", "k", "k", "k", "k", "k", "k", "k", "k")
		r := start(t, s, func(ctx context.Context, rec *sluice.Record) error {
			<-release
			return got.handle(ctx, rec)
		}, o)
		pass(4 * time.Minute)
		r.unready("") // not polling is the flow's wish
		pass(12 * time.Minute)
		if n := s.count("GetRecords", "a"); n > 5 {
			t.Errorf("%d pages were fetched into a full window", n)
		}
		s.with(func() { s.fail = func(string, string) string { return "hang" } })
		close(release)
		synctest.Wait()
		r.unready("")
		pass(31 * time.Second)
		r.unready("no successful poll")
		s.with(func() { s.fail = nil })
		pass(time.Minute)
		want(t, "handled", got.all(), "a/1 a/2 a/3 a/4 a/5 a/6 a/7 a/8 a/9 a/10 a/11 a/12")
		its := s.iterators("a")
		want(t, "last iterator", its[len(its)-1], "AFTER_SEQUENCE_NUMBER")
		r.mustEnd()
	})
}

// F024: an iterator that expires before any record falls back to the beginning.
func TestIteratorExpiresBeforeAnyRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		down := true
		s.fail = func(op, _ string) string {
			if down && op == "GetRecords" {
				return "InternalServerError:500"
			}
			return ""
		}
		var got sink
		r := start(t, s, got.handle, testOptions(state.NewMemory(), "orders"))
		s.put(a, "k")
		pass(16 * time.Minute)
		if r.ready() {
			t.Error("ready, though no poll succeeds")
		}
		s.with(func() { down = false })
		pass(time.Minute)
		want(t, "handled", got.all(), "a/1")
		for _, it := range s.iterators("a") {
			want(t, "iterator", it, "TRIM_HORIZON")
		}
		if !r.ready() {
			t.Errorf("not ready: %v", r.p.Health().Reasons)
		}
		r.mustEnd()
	})
}

// F027, F028, F030: a trimmed position is a gap that everybody hears of, and
// nothing still there is skipped or repeated.
func TestTrimmedPosition(t *testing.T) {
	for _, c := range []struct {
		name          string
		policy        GapPolicy
		trim          int
		handled, ends string
	}{
		{"go on", GoOn, 4, "a/5 a/6 a/7", "started a, gap a 2, stopped a"},
		{"go on where the next is still there", GoOn, 2, "a/3 a/4 a/5 a/6 a/7", "started a, gap a 2, stopped a"},
		{"go on where more is still there", GoOn, 0, "a/3 a/4 a/5 a/6 a/7", "started a, gap a 2, stopped a"},
		{"halt", Halt, 4, "", "started a, gap a 2, halted a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), state.NewMemory()
				a := &stubShard{id: "a"}
				s.table("orders", a)
				s.put(a, "k", "k")
				var got sink
				o := testOptions(store, "orders")
				o.Gaps = c.policy
				r := start(t, s, got.handle, o)
				pass(time.Second)
				r.mustEnd()
				s.put(a, "k", "k", "k", "k", "k")
				s.with(func() {
					a.trimmed = c.trim
					s.fail = func(string, string) string {
						if s.last().kind == "AFTER_SEQUENCE_NUMBER" {
							return "TrimmedDataAccessException"
						}
						return ""
					}
				})
				got.got = nil
				r = start(t, s, got.handle, o)
				pass(time.Minute)
				want(t, "handled", got.all(), c.handled)
				r.unready("trimmed unread")
				r.p.AcknowledgeGaps()
				if c.policy == Halt {
					r.unready("halted at a gap")
				} else {
					r.unready("")
				}
				r.mustEnd()
				want(t, "events", r.log(), c.ends)
				if c.policy == Halt {
					want(t, "position", stored(t, store, "orders"), "a@2")
				}
			})
		})
	}
}

// F016, F026: a shard that is no more ends, is reported, frees its children
// and leaves the others alone.
func TestShardIsGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a, b := &stubShard{id: "a"}, &stubShard{id: "b"}
		st := s.table("orders", a, b)
		s.put(a, "k")
		var got sink
		r := start(t, s, got.handle, testOptions(store, "orders"))
		pass(time.Second)
		c := &stubShard{id: "c", parent: "a"}
		s.put(b, "k")
		s.put(c, "k")
		s.with(func() { st.shards = []*stubShard{b, c} })
		pass(30 * time.Second)
		want(t, "handled", got.all(), "a/1 b/1 c/1")
		if !strings.Contains(r.log(), "gone a, gap a 1, finished a") {
			t.Errorf("events: %s", r.log())
		}
		r.mustEnd()
		want(t, "positions", stored(t, store, "orders"), "a@1! b@1 c@1")
	})
}

// A service that denies a shard which it lists, or the whole stream, costs no
// position: it may be the wrong service.
func TestDeniedButListed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := &stubShard{id: "a"}
		st := s.table("orders", a)
		s.put(a, "k")
		var got sink
		r := start(t, s, got.handle, testOptions(store, "orders"))
		pass(time.Second)
		s.with(func() {
			s.fail = func(op, _ string) string {
				if op == "GetRecords" {
					return "ResourceNotFoundException"
				}
				return ""
			}
		})
		pass(20 * time.Second)
		s.with(func() { delete(s.streams, st.arn) })
		pass(5 * time.Minute)
		if r.ready() {
			t.Error("ready without a stream")
		}
		s.with(func() { s.streams[st.arn], s.fail = st, nil })
		s.put(a, "k")
		pass(2 * time.Minute)
		want(t, "handled", got.all(), "a/1 a/2")
		r.mustEnd()
		want(t, "position", stored(t, store, "orders"), "a@2")
	})
}

// F049, F056: nothing that passes ends a shard, and one shard's trouble is not
// another's.
func TestTransientErrors(t *testing.T) {
	for _, e := range []string{"LimitExceededException", "ThrottlingException", "InternalServerError:500", "Whatever:503", "Odd", "hang", "ValidationException"} {
		t.Run(e, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newStub()
				a, b := &stubShard{id: "a"}, &stubShard{id: "b"}
				s.table("orders", a, b)
				left := 5
				s.fail = func(op, shard string) string {
					if shard == "a" && left > 0 && (op == "GetRecords" || op == "GetShardIterator") {
						left--
						return e
					}
					return ""
				}
				s.put(a, "k")
				s.put(b, "k")
				var got sink
				r := start(t, s, got.handle, testOptions(state.NewMemory(), "orders"))
				pass(50 * time.Millisecond)
				want(t, "handled at first", got.all(), "b/1")
				pass(2 * time.Minute)
				want(t, "handled", got.all(), "b/1 a/1")
				r.mustEnd()
			})
		})
	}
}

// F029: an iterator that the service does not accept is replaced.
func TestBadIterator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		s.put(a, "k")
		bad := false
		s.fail = func(op, _ string) string {
			switch op {
			case "GetShardIterator":
				bad = len(s.calls) > 4 && !bad // the reader's first
			case "GetRecords":
				if bad {
					return "ValidationException"
				}
			}
			return ""
		}
		var got sink
		r := start(t, s, got.handle, testOptions(state.NewMemory(), "orders"))
		pass(time.Minute)
		want(t, "handled", got.all(), "a/1")
		r.mustEnd()
	})
}

// A throttled shard with a backlog is read on with pauses, and a success ends
// the backing off.
func TestThrottledBacklog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		for range 10 {
			s.put(a, "k")
		}
		tries := 0
		s.fail = func(op, _ string) string {
			if tries++; op == "GetRecords" && tries < 15 {
				return "ThrottlingException"
			}
			return ""
		}
		var got sink
		o := testOptions(state.NewMemory(), "orders")
		o.Limit = 1
		r := start(t, s, got.handle, o)
		pass(3 * time.Minute)
		var calls []time.Time
		s.with(func() {
			for _, c := range s.calls {
				if c.op == "GetRecords" {
					calls = append(calls, c.at)
				}
			}
		})
		want(t, "handled", got.all(), "a/1 a/2 a/3 a/4 a/5 a/6 a/7 a/8 a/9 a/10")
		for i := 14; i < 18; i++ {
			if d := calls[i].Sub(calls[i-1]); d < 500*time.Millisecond {
				t.Errorf("call %d came %v after the one before", i, d)
			}
		}
		s.with(func() { tries = 13 })
		s.put(a, "k")
		pass(1500 * time.Millisecond)
		want(t, "handled", got.all()[len(got.all())-4:], "a/11")
		r.mustEnd()
	})
}

func TestAccessLostWhileRunning(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		var got sink
		r := start(t, s, got.handle, testOptions(state.NewMemory(), "orders"))
		pass(time.Second)
		s.with(func() { s.fail = func(op, _ string) string { return "AccessDeniedException" } })
		pass(2 * time.Second)
		reasons := strings.Join(r.p.Health().Reasons, "\n")
		for _, part := range []string{"AccessDeniedException", "GetRecords", stubARN("orders")} {
			if !strings.Contains(reasons, part) {
				t.Errorf("reasons lack %q: %s", part, reasons)
			}
		}
		before := s.count("GetRecords", "")
		pass(10 * time.Minute)
		if n := s.count("GetRecords", "") - before; n < 10 || n > 50 {
			t.Errorf("%d tries in 10 minutes, want slow ones", n)
		}
		s.with(func() { s.fail = nil })
		s.put(a, "k")
		pass(time.Minute)
		want(t, "handled", got.all(), "a/1")
		if !r.ready() {
			t.Errorf("not ready: %v", r.p.Health().Reasons)
		}
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
		o := testOptions(state.NewMemory(), "orders")
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
		if reasons := strings.Join(r.p.Health().Reasons, "\n"); !strings.Contains(reasons, "watermark has not moved") {
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
