//go:build integration || long

package poller

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sources/poller/internal/positions"
	"github.com/sluicehq/sluice/state"
)

// watch fails when the pages of r take more than the limit at any call, or at
// any record that h handles.
func watch(t *testing.T, s *stub, h sluice.Handler, o Options) *rig {
	var p atomic.Pointer[Poller]
	check := func() {
		if p := p.Load(); p != nil {
			if m := p.memory(); m.Pinned > m.Limit || m.Pinned < 0 {
				t.Errorf("pages take %d bytes of %d", m.Pinned, m.Limit)
			}
		}
	}
	s.fail = func(string, string) string { check(); return "" }
	r := start(t, s, func(ctx context.Context, rec *sluice.Record) error {
		check()
		return h(ctx, rec)
	}, o)
	p.Store(r.p)
	return r
}

// A sink stands still for longer than iterators live. A thousand busy shards
// stay within their memory, and all go on in turn when the sink does.
func TestMemoryIsBoundedWhileASinkStandsStill(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		const shards, records = 1000, 3
		s := newStub()
		crowd(s, "orders", shards, records, strings.Repeat("x", 20_000))
		o := testOptions(state.NewMemory(), "orders")
		o.Limit, o.MaxMemory, o.BusyInterval = 1, least, 10*time.Second
		release := make(chan struct{})
		before := heap()
		var mu sync.Mutex
		handled := map[string]int{} // by shard
		total, last := 0, 0         // records; when the last shard had its first
		r := watch(t, s, func(_ context.Context, rec *sluice.Record) error {
			<-release
			mu.Lock()
			defer mu.Unlock()
			total++
			if handled[rec.ShardID]++; handled[rec.ShardID] == 1 {
				last = total
			}
			return nil
		}, o)
		pass(20 * time.Minute)
		m := r.p.memory()
		s.with(func() { s.calls = nil })
		if real := heap() - before; real > m.Limit*5/4+shards*(24<<10) {
			t.Errorf("%d bytes are in use for %d shards and %d bytes of pages", real, shards, m.Pinned)
		}
		r.unready("Options.MaxMemory")
		var pinned int64
		none, fetched := 0, 0
		for _, st := range r.p.Shards() {
			if pinned += st.Pinned; st.Pinned == 0 {
				none++
			}
			fetched += int(st.Pinned / 20_000)
		}
		if pinned != m.Pinned || pinned < m.Limit/2 || m.Waiting < shards/2 || none > 3*shards/4 {
			t.Errorf("standing still: %+v, %d by all shards, %d have none", m, pinned, none)
		}
		close(release)
		pass(10 * time.Second)
		for id, n := range handled {
			if n != records {
				t.Errorf("%d records of %s were handled, want each once", n, id)
			}
		}
		if len(handled) != shards || last > fetched+shards {
			t.Errorf("records of %d shards were handled; the last one's first came after %d", len(handled), last)
		}
		r.unready("")
		r.mustEnd()
	})
}

// A handler that takes longer than an iterator lives costs its shard a new
// iterator, and other shards nothing.
func TestASlowHandlerStopsNoOtherShard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		shards := crowd(s, "orders", 2, 0, "")
		slow, quick := shards[0], shards[1]
		s.put(slow, "a", "b", "c", "d", "e", "f")
		o := testOptions(state.NewMemory(), "orders")
		o.Limit, o.Flow.Window, o.BusyInterval = 1, 1, time.Second
		var late time.Duration
		var got sink
		r := watch(t, s, func(ctx context.Context, rec *sluice.Record) error {
			if short(rec) == slow.id+"/1" {
				time.Sleep(20 * time.Minute)
			} else if rec.ShardID == quick.id {
				late = max(late, time.Since(rec.Created))
			}
			return got.handle(ctx, rec)
		}, o)
		for range 19 {
			pass(time.Minute)
			s.put(quick, "k")
		}
		pass(10 * time.Second)
		if n := strings.Count(got.all(), quick.id); n != 19 || late > 2*time.Second {
			t.Errorf("%d of 19 records of another shard were handled, the latest after %v", n, late)
		}
		pass(2 * time.Minute)
		if n := strings.Count(got.all(), slow.id); n != 6 {
			t.Errorf("%d of 6 records of the slow shard were handled", n)
		}
		want(t, "its iterators", strings.Join(s.iterators(slow.id), " "), "TRIM_HORIZON AFTER_SEQUENCE_NUMBER")
		if n := len(s.iterators(quick.id)); n > 2 {
			t.Errorf("the other shard took %d iterators", n)
		}
		r.mustEnd()
	})
}

// An outage of what handles one table stops its shards. Those of other tables
// are read on.
func TestAStandingTableDoesNotStarveOthers(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		s := newStub()
		text := strings.Repeat("x", 20_000)
		crowd(s, "orders", 200, 5, text)
		crowd(s, "carts", 200, 5, text)
		users := crowd(s, "users", 3, 5, text)
		o := testOptions(state.NewMemory(), "orders", "carts", "users")
		o.Limit, o.MaxMemory, o.BusyInterval = 1, 24*mib, 5*time.Second
		o.Grace = 4 * time.Second
		var got sink
		r := watch(t, s, func(ctx context.Context, rec *sluice.Record) error {
			if rec.Table != "users" {
				<-ctx.Done()
				return ctx.Err()
			}
			return got.handle(ctx, rec)
		}, o)
		for i := range 20 {
			pass(time.Minute)
			s.put(users[i%3], "k")
		}
		pass(time.Minute)
		if n := len(strings.Fields(got.all())); n != 35 {
			t.Errorf("%d of 35 records were handled beside tables that stand still", n)
		}
		if m := r.p.memory(); m.Waiting < 50 {
			t.Errorf("they do not: %+v", m)
		}
		r.mustEnd()
	})
}

// A few records that are held, and all that was settled past them, are what is
// counted, not the pages they came with.
func TestHeldRecordsTakeLittle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a", text: strings.Repeat("x", 2000)}
		s.table("orders", a)
		for i := range 5000 {
			s.put(a, fmt.Sprint("k", i))
		}
		o := testOptions(state.NewMemory(), "orders")
		var good atomic.Bool
		r := watch(t, s, func(_ context.Context, rec *sluice.Record) error {
			if !good.Load() && (short(rec) == "a/1" || short(rec) == "a/1200") {
				return errors.New("held")
			}
			return nil
		}, o)
		pass(time.Minute)
		few, settled := int64(2*8000), 5000*positions.Bytes(&sluice.Record{Sequence: stubBase + "1200"})
		if m := r.p.memory(); m.Pinned < settled/2 || m.Pinned > few+settled {
			t.Errorf("%d bytes are taken by 2 held records and the positions of 4,998", m.Pinned)
		}
		good.Store(true)
		pass(time.Minute)
		if m := r.p.memory(); m.Pinned != 0 {
			t.Errorf("%d bytes are taken when all is settled", m.Pinned)
		}
		r.mustEnd()
	})
}

// Whatever ends a shard, its memory is given back (the rig checks at its end).
func TestMemoryIsGivenBack(t *testing.T) {
	for name, c := range map[string]struct {
		o       func(*Options)
		handler func(rec *sluice.Record) error
		during  func(s *stub, a *stubShard, store state.Store)
	}{
		"a lost lease": {during: func(s *stub, a *stubShard, store state.Store) {
			stream := state.Stream{Application: "sluice", ARN: stubARN("orders")}
			shards, _ := store.Shards(context.Background(), stream)
			store.Release(context.Background(), state.Lease{Stream: stream, ShardID: "a", Owner: shards[0].Owner, Epoch: shards[0].Epoch})
			store.Claim(context.Background(), stream, "a", "", "another")
		}},
		"a shard that is gone": {during: func(s *stub, a *stubShard, _ state.Store) {
			s.with(func() { s.streams[stubARN("orders")].shards = nil })
		}},
		"a gap at which it halts": {o: func(o *Options) { o.Gaps = Halt }, during: func(s *stub, a *stubShard, _ state.Store) {
			s.with(func() { a.trimmed = 40 })
		}},
		"a hook that panics": {during: func(s *stub, a *stubShard, _ state.Store) {
			s.with(func() { s.fail = func(op, _ string) string { panic("in the transport") } })
		}},
		"records that fail for good": {handler: func(*sluice.Record) error { return sluice.Permanent(errors.New("no")) }},
		"a handler that panics":      {handler: func(*sluice.Record) error { panic("no") }},
		"answers that are damaged": {during: func(s *stub, a *stubShard, _ state.Store) {
			s.with(func() { s.fail = func(op, _ string) string { return "InternalServerError:500" } })
		}},
		"a call that hangs": {during: func(s *stub, a *stubShard, _ state.Store) {
			s.with(func() { s.fail = func(op, _ string) string { return "hang" } })
		}},
		"an end with a full window":      {o: func(o *Options) { o.Flow = flow.Options{Window: 1} }},
		"an end while all memory is out": {o: func(o *Options) { o.Limit = 1000; o.MaxMemory = least }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), state.NewMemory()
				a := crowd(s, "orders", 1, 200, strings.Repeat("x", 10_000))[0]
				a.id = "a"
				o := testOptions(store, "orders")
				o.Limit = 10
				o.Flow.Window = 50
				if c.o != nil {
					c.o(&o)
				}
				r := start(t, s, func(ctx context.Context, rec *sluice.Record) error {
					select {
					case <-time.After(5 * time.Second):
					case <-ctx.Done():
						return ctx.Err()
					}
					if c.handler != nil {
						return c.handler(rec)
					}
					return nil
				}, o)
				pass(time.Second)
				if r.p.memory().Pinned == 0 {
					t.Error("nothing is taken")
				}
				if c.during != nil {
					c.during(s, a, store)
				}
				pass(10 * time.Second)
				r.mustEnd()
			})
		})
	}
}

func TestMaxMemoryFollowsGOMEMLIMIT(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for limit, want := range map[int64]int64{math.MaxInt64: 256 * mib, 4096 * mib: 1024 * mib, 400 * mib: 100 * mib, 40 * mib: 16 * mib} {
		debug.SetMemoryLimit(limit)
		if got := (Options{}).withDefaults().MaxMemory; got != want {
			t.Errorf("GOMEMLIMIT %d: MaxMemory %d, want %d", limit, got, want)
		}
	}
}

const (
	mib   = 1 << 20
	least = 16 * mib
)

// heap returns the bytes that are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools kept for one more
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
