package poller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// The position follows the watermark, not the last success.
func TestPositionNeverPassesWhatIsUnsettled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		s.put(a, "x", "slow", "y", "z")
		release := make(chan struct{})
		var got sink
		r := start(t, s, func(ctx context.Context, rec *sluice.Record) error {
			if short(rec) == "a/2" {
				<-release
			}
			return got.handle(ctx, rec)
		}, testOptions(store, "orders"))
		pass(5 * time.Second)
		if n := len(strings.Fields(got.all())); n != 3 {
			t.Errorf("handled %s, want the three others", got.all())
		}
		want(t, "position", stored(t, store, "orders"), "a@1")
		close(release)
		pass(2 * time.Second)
		want(t, "position", stored(t, store, "orders"), "a@4")
		r.mustEnd()
	})
}

// On shutdown running handlers finish, and no handler starts after Grace. The
// position is exact, and the shard is free at once.
func TestGrace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		s.put(a, "x", "stuck", "slow", "x")
		never := make(chan struct{})
		var got sink
		o := testOptions(store, "orders")
		o.Grace = 10 * time.Second
		r := start(t, s, func(ctx context.Context, rec *sluice.Record) error {
			switch short(rec) {
			case "a/2":
				<-never // whatever its context says
			case "a/3":
				time.Sleep(5 * time.Second)
			}
			return got.handle(ctx, rec)
		}, o)
		pass(time.Second)
		began := time.Now()
		r.mustEnd()
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("Run took %v of a Grace of 10 s", d)
		}
		if !strings.Contains(got.all(), "a/3") {
			t.Errorf("handled %s: what ran was not waited for", got.all())
		}
		want(t, "position", stored(t, store, "orders"), "a@1")
		shards, _ := store.Shards(t.Context(), state.Stream{Application: "sluice", ARN: stubARN("orders")})
		want(t, "owner", shards[0].Owner, "")
		close(never)
	})
}

// A handler that is cancelled near the end of Grace and succeeds counts.
func TestGraceCountsWhatCancelledHandlersDid(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		s.put(a, "x", "y")
		o := testOptions(store, "orders")
		o.Grace = 10 * time.Second
		r := start(t, s, func(ctx context.Context, rec *sluice.Record) error {
			<-ctx.Done()
			time.Sleep(100 * time.Millisecond) // the answer of a sink
			return nil
		}, o)
		pass(time.Second)
		began := time.Now()
		r.mustEnd()
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("Run took %v of a Grace of 10 s", d)
		}
		want(t, "position", stored(t, store, "orders"), "a@2")
	})
}

// hanging is a store whose Checkpoint ends only with its context.
type hanging struct{ state.Store }

func (hanging) Checkpoint(ctx context.Context, cs []state.Checkpoint) []error {
	<-ctx.Done()
	errs := make([]error, len(cs))
	for i := range errs {
		errs[i] = ctx.Err()
	}
	return errs
}

// A store that does not answer does not make Run exceed Grace.
func TestGraceOfAStoreThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		s.put(a, "x")
		var got sink
		o := testOptions(hanging{state.NewMemory()}, "orders")
		o.Grace = 4 * time.Second
		p, err := New(s.config(), matcher(got.handle), o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		pass(2 * time.Second)
		began := time.Now()
		stop()
		if err := <-done; err == nil {
			t.Error("Run: no error although the position is not stored")
		}
		if d := time.Since(began); d > o.Grace {
			t.Errorf("Run took %v of a Grace of %v", d, o.Grace)
		}
	})
}

// A closed shard whose last page is not settled when Grace is over is not
// finished.
func TestGraceOfAClosedShard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := &stubShard{id: "a", closed: true}
		s.table("orders", a)
		s.put(a, "x", "y", "y")
		var got sink
		r := start(t, s, func(ctx context.Context, rec *sluice.Record) error {
			if short(rec) == "a/2" {
				return errors.New("not now")
			}
			return got.handle(ctx, rec)
		}, testOptions(store, "orders"))
		pass(2 * time.Second)
		r.mustEnd()
		want(t, "position", stored(t, store, "orders"), "a@1")
		want(t, "events", r.log(), "started a, stopped a")
		got.got = nil
		r = start(t, s, got.handle, testOptions(store, "orders"))
		pass(2 * time.Second)
		r.mustEnd()
		want(t, "handled", got.all(), "a/2 a/3")
		want(t, "position", stored(t, store, "orders"), "a@3!")
	})
}

// spy is a store that can be told to fail, and counts.
type spy struct {
	state.Store
	fail  atomic.Bool
	deny  atomic.Bool // claims
	calls atomic.Int64
	most  atomic.Int64 // checkpoints in one call
}

var errDisk = errors.New("disk full")

func (s *spy) Checkpoint(ctx context.Context, cs []state.Checkpoint) []error {
	s.calls.Add(1)
	s.most.Store(max(s.most.Load(), int64(len(cs))))
	if s.fail.Load() {
		errs := make([]error, len(cs))
		for i := range errs {
			errs[i] = errDisk
		}
		return errs
	}
	return s.Store.Checkpoint(ctx, cs)
}

func (s *spy) Claim(ctx context.Context, st state.Stream, id, parent, owner string) (state.Shard, error) {
	if s.deny.Load() {
		return state.Shard{}, errDisk
	}
	return s.Store.Claim(ctx, st, id, parent, owner)
}

// A claim that failed makes the poller unready until one does not.
func TestClaimFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), &spy{Store: state.NewMemory()}
		a := &stubShard{id: "a"}
		s.table("orders", a)
		s.put(a, "k")
		store.deny.Store(true)
		var got sink
		r := start(t, s, got.handle, testOptions(store, "orders"))
		pass(10 * time.Second)
		r.unready("claim fails")
		want(t, "handled", got.all(), "")
		store.deny.Store(false)
		pass(2 * time.Second)
		r.unready("")
		want(t, "handled", got.all(), "a/1")
		r.mustEnd()
	})
}

// A store that fails costs only readiness. A shard is finished only after its
// end is stored.
func TestStoreFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), &spy{Store: state.NewMemory()}
		a, b := &stubShard{id: "a", closed: true}, &stubShard{id: "b", parent: "a"}
		s.table("orders", a, b)
		s.put(a, "k")
		s.put(b, "k")
		store.fail.Store(true)
		var got sink
		r := start(t, s, got.handle, testOptions(store, "orders"))
		pass(time.Minute)
		want(t, "handled while the store fails", got.all(), "a/1")
		if reasons := strings.Join(r.p.NotReady(), "\n"); !strings.Contains(reasons, "disk full") {
			t.Errorf("reasons: %s", reasons)
		}
		store.fail.Store(false)
		pass(1500 * time.Millisecond) // with the next write, whoever makes it
		want(t, "handled", got.all(), "a/1 b/1")
		if !r.ready() {
			t.Errorf("not ready: %v", r.p.NotReady())
		}
		store.fail.Store(true)
		s.put(b, "k")
		pass(time.Second)
		if err := r.end(); !errors.Is(err, errDisk) && !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v, want that the last position was not stored", err)
		}
	})
}

// One call for all shards; none while nothing moves.
func TestCheckpointsShareACall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), &spy{Store: state.NewMemory()}
		var shards []*stubShard
		for i := range 20 {
			shards = append(shards, &stubShard{id: fmt.Sprintf("s%02d", i)})
			s.put(shards[i], "k")
		}
		s.table("orders", shards...)
		var got sink
		r := start(t, s, got.handle, testOptions(store, "orders"))
		pass(10 * time.Second)
		if n, most := store.calls.Load(), store.most.Load(); n != 1 || most != 20 {
			t.Errorf("%d calls, at most %d positions in one; want one of 20", n, most)
		}
		r.mustEnd()
	})
}

// A worker that lost its lease stops and stores nothing more, even if its
// position stands still.
func TestLeaseLost(t *testing.T) {
	for _, c := range []struct {
		name    string
		notice  time.Duration
		handled string
	}{
		{"noticed when storing", 3 * time.Second, "a/1 a/2"},
		{"noticed by a listing", 58100 * time.Millisecond, "a/1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), state.NewMemory()
				a := &stubShard{id: "a"}
				s.table("orders", a)
				s.put(a, "x")
				var thief atomic.Bool
				thief.Store(true)
				var cancelled atomic.Bool
				var got sink
				r := start(t, s, func(ctx context.Context, rec *sluice.Record) error {
					if thief.Load() && rec.Sequence != stubBase+"1" && !strings.HasSuffix(c.handled, short(rec)) {
						<-ctx.Done()
						cancelled.Store(true)
						return ctx.Err()
					}
					return got.handle(ctx, rec)
				}, testOptions(store, "orders"))
				pass(2 * time.Second)
				stream := state.Stream{Application: "sluice", ARN: stubARN("orders")}
				mine, _ := store.Shards(t.Context(), stream)
				if err := store.Release(t.Context(), state.Lease{Stream: stream, ShardID: "a", Owner: mine[0].Owner, Epoch: mine[0].Epoch}); err != nil {
					t.Fatal(err)
				}
				if _, err := store.Claim(t.Context(), stream, "a", "", "thief"); err != nil {
					t.Fatal(err)
				}
				s.put(a, "j", "k")
				pass(c.notice)
				if !cancelled.Load() {
					t.Fatal("the handler's context was not cancelled")
				}
				want(t, "handled", got.all(), c.handled)
				want(t, "position", stored(t, store, "orders"), "a@1")
				thief.Store(false)
				pass(30 * time.Second) // it shows no sign of life
				r.mustEnd()
				want(t, "position at the end", stored(t, store, "orders"), "a@3")
				want(t, "events at the end", r.log(), "started a, lease lost a, started a, stopped a")
			})
		})
	}
}

// After a lost lease the shard is not begun again beside a handler that has
// not returned.
func TestLeaseLostWaitsForHandlers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		s.put(a, "k")
		stubborn := make(chan struct{})
		var calls atomic.Int64
		r := start(t, s, func(context.Context, *sluice.Record) error {
			calls.Add(1)
			<-stubborn
			return nil
		}, testOptions(store, "orders"))
		stream := state.Stream{Application: "sluice", ARN: stubARN("orders")}
		mine, _ := store.Shards(t.Context(), stream)
		r.p.checkpoints.Check(stream, []state.Shard{{ID: "a", Epoch: mine[0].Epoch + 1}})
		pass(time.Minute)
		if calls.Load() != 1 {
			t.Errorf("%d calls at a time", calls.Load())
		}
		close(stubborn)
		pass(time.Minute)
		if calls.Load() != 2 {
			t.Errorf("%d calls, want the second after the first", calls.Load())
		}
		r.mustEnd()
	})
}

// claims counts.
type claims struct {
	*state.Memory
	n atomic.Int64
}

func (c *claims) Claim(ctx context.Context, s state.Stream, id, parent, owner string) (state.Shard, error) {
	c.n.Add(1)
	return c.Memory.Claim(ctx, s, id, parent, owner)
}

// A finished shard that comes and goes in listings is not begun again.
func TestFinishedShardShownAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), &claims{Memory: state.NewMemory()}
		st := s.table("orders", &stubShard{id: "a", closed: true}, &stubShard{id: "b", parent: "a"})
		var got sink
		r := start(t, s, got.handle, testOptions(store, "orders"))
		pass(10 * time.Second)
		for range 3 {
			s.with(func() { st.hidden["a"] = !st.hidden["a"] })
			pass(5 * time.Minute)
		}
		if n := store.n.Load(); n != 2 {
			t.Errorf("%d claims of two shards", n)
		}
		r.mustEnd()
	})
}

// Two pollers on one store: a shard has one reader, and who is left takes over
// what the other released.
func TestTwoPollersShareAStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		s.put(a, "k")
		var one, two sink
		first := start(t, s, one.handle, testOptions(store, "orders"))
		pass(time.Second)
		second := start(t, s, two.handle, testOptions(store, "orders"))
		pass(time.Minute)
		s.put(a, "k")
		pass(time.Minute)
		want(t, "handled by the first", one.all(), "a/1 a/2")
		want(t, "handled by the second", two.all(), "")
		first.mustEnd()
		pass(2 * time.Second)
		s.put(a, "k")
		pass(time.Second)
		want(t, "handled by the second", two.all(), "a/3")
		second.mustEnd()
	})
}

// counted counts the positions that a store is given.
type counted struct {
	sharedStore
	writes atomic.Int64
}

func (c *counted) Checkpoint(ctx context.Context, cs []state.Checkpoint) []error {
	c.writes.Add(int64(len(cs)))
	return c.Store.Checkpoint(ctx, cs)
}

// In a store that several processes share, a worker with many busy shards stores each
// less often. The end of a shard waits for nothing, nor does the end of Run.
func TestBusyShardsOfASharedStoreTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		shards := crowd(s, "orders", 40, 1, "")
		var got sink
		shared := &counted{sharedStore: sharedStore{Store: store}}
		o := testOptions(shared, "orders")
		o.BusyInterval = time.Second
		r := start(t, s, got.handle, o)
		put := func(seconds int) {
			for range seconds {
				for _, sh := range shards {
					s.put(sh, "k")
				}
				pass(time.Second)
				r.unready("")
			}
		}
		put(4)
		before := shared.writes.Load()
		put(10)
		if n := shared.writes.Load() - before; n < 10*19 || n > 10*20 {
			t.Errorf("%d writes in 10 seconds, want 20 a second", n)
		}
		child := &stubShard{id: "child", parent: shards[0].id}
		s.put(child, "k")
		s.with(func() {
			shards[0].closed = true
			st := s.streams[stubARN("orders")]
			st.shards = append(st.shards, child)
		})
		pass(2 * time.Second)
		want(t, "handled of the child", got.of("c"), "child/1")
		r.mustEnd()
		if all := stored(t, store, "orders"); strings.Count(all, "@15") != 40 {
			t.Errorf("stored: %s, want each at its last record", all)
		}
	})
}
