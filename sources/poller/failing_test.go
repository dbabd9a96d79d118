package poller

import (
	"context"
	"github.com/sluicehq/sluice/internal/localtest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// The window is full for longer than an iterator lives. That bounds what is
// fetched, and costs a new iterator after the last record read.
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

// An iterator that expires before any record falls back to the beginning.
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
			t.Errorf("not ready: %v", r.p.NotReady())
		}
		r.mustEnd()
	})
}

// A trimmed position is a gap that everybody hears of. Records that are still
// there are neither skipped nor repeated.
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
				r.unready("trimmed before they were read: acknowledge the gap")
				if err := r.p.AcknowledgeGaps(t.Context(), r.p.Gaps()...); err != nil {
					t.Error(err)
				}
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

// A shard that is gone ends, is reported, and frees its children. Other shards
// go on.
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

// An error that passes ends no shard. An error of one shard does not touch
// another.
func TestTransientErrors(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
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

// An iterator that the service does not accept is replaced.
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
		o := atDefaultPace(testOptions(state.NewMemory(), "orders"))
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
		reasons := strings.Join(r.p.NotReady(), "\n")
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
			t.Errorf("not ready: %v", r.p.NotReady())
		}
		r.mustEnd()
	})
}

// A good answer with nothing in it, as a proxy may give, says nothing: neither
// that there are no shards nor that all is read. Nor does a shard without an id.
func TestAnswersWithNothingInThem(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := &stubShard{id: "a"}
		st := s.table("orders", a)
		s.put(a, "k")
		bad := true
		s.fail = func(string, string) string {
			if bad {
				return "void"
			}
			return ""
		}
		var got sink
		o := testOptions(store, "orders")
		o.StartTimeout = time.Minute
		r := start(t, s, got.handle, o)
		pass(10 * time.Second)
		s.with(func() { bad = false })
		pass(10 * time.Second)
		want(t, "handled", got.all(), "a/1")
		s.put(a, "k")
		s.with(func() { bad = true })
		pass(5 * time.Minute)
		r.unready("shards cannot be listed")
		b := &stubShard{id: "b", parent: "a"}
		s.put(b, "k")
		s.with(func() { bad, a.closed, st.shards = false, true, append(st.shards, b, &stubShard{}) })
		pass(time.Minute)
		want(t, "handled", got.all(), "a/1 a/2")
		s.with(func() { st.shards = st.shards[:2] })
		pass(time.Minute)
		want(t, "handled", got.all(), "a/1 a/2 b/1")
		r.unready("")
		r.mustEnd()
		want(t, "positions", stored(t, store, "orders"), "a@2! b@1")
	})
}
