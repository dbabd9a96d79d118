package poller

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// sharedStore is a store whose owners may be fenced after ten silent seconds.
type sharedStore struct {
	state.Store
	heartbeat func() error // called before each; nil: none fails
}

func (sharedStore) SilentAfter() time.Duration { return 10 * time.Second }

func (s sharedStore) Heartbeat(ctx context.Context, owner string) error {
	if s.heartbeat != nil {
		if err := s.heartbeat(); err != nil {
			return err
		}
	}
	return s.Store.Heartbeat(ctx, owner)
}

// admitted reports whether a call of a lease's owner may begin at once.
func admitted(t *testing.T, o *owner, of string) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- o.admit(ctx, of) }()
	synctest.Wait()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("admit: %v", err)
		}
		return true
	default:
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("admit of a lease that ended: %v", err)
		}
		return false
	}
}

func TestAdmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o owner
		o.begin("me", sharedStore{})
		is := func(when, of string, want bool) {
			t.Helper()
			if got := admitted(t, &o, of); got != want {
				t.Errorf("%s: admitted %v, want %v", when, got, want)
			}
		}
		is("before the first heartbeat", "me", false)
		sent := time.Now()
		time.Sleep(5 * time.Second) // the answer is late
		o.stored("me", sent)
		is("after a heartbeat", "me", true)
		is("after a heartbeat of another name", "another", false)
		time.Sleep(4*time.Second - time.Millisecond)
		is("almost 9 s after the sending", "me", true)
		time.Sleep(time.Millisecond)
		is("9 s after the sending", "me", false)
		waits := make(chan error, 1)
		go func() { waits <- o.admit(t.Context(), "me") }()
		synctest.Wait()
		o.stored("me", time.Now())
		if err := <-waits; err != nil {
			t.Errorf("a call that waited for the heartbeat: %v", err)
		}
		o.proof.Load().wall = time.Now().Round(0).Add(-2 * time.Second)
		is("after the clock was set", "me", false)
		o.stored("me", time.Now())
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(state.ErrLeaseLost)
		if err := o.admit(ctx, "me"); !errors.Is(err, state.ErrLeaseLost) {
			t.Errorf("admit of a lost lease: %v", err)
		}
	})
}

// A worker whose claim is refused because its name is fenced claims under another,
// though its heartbeats are slow.
func TestAFencedClaimIsRepeatedUnderAnotherName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		s.put(a, "k")
		stream := state.Stream{Application: "sluice", ARN: stubARN("orders")}
		if _, err := store.Claim(t.Context(), stream, "a", "", "me"); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if _, err := store.Claim(t.Context(), stream, "a", "", "another"); err != nil { // which fences me
			t.Fatal(err)
		}
		pass(time.Minute)
		var got sink
		o := testOptions(sharedStore{Store: store}, "orders")
		o.Owner, o.HeartbeatEvery = "me", 3*time.Second
		r := start(t, s, got.handle, o)
		pass(2 * time.Second)
		want(t, "handled", got.all(), "a/1")
		if name := r.p.Owner(); !strings.HasPrefix(name, "me/") {
			t.Errorf("it goes on as %s", name)
		}
		r.mustEnd()
		if all, err := store.Shards(t.Context(), stream); err != nil || len(all) != 1 || !strings.HasPrefix(all[0].Owner, "me/") && all[0].Owner != "" {
			t.Errorf("stored %+v, %v", all, err)
		}
	})
}

// A worker that is fenced loses its shards at once, though none of their positions
// moves, and no handler begins for them.
func TestAFencedWorkerLosesItsShardsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		var fence atomic.Bool
		shared := sharedStore{Store: store, heartbeat: func() error {
			if fence.Swap(false) {
				return state.ErrFenced
			}
			return nil
		}}
		var logged atomic.Value
		o := testOptions(shared, "orders")
		o.Logger = slog.New(slog.NewTextHandler(writer(func(line string) {
			if strings.Contains(line, `"shard ended"`) {
				logged.CompareAndSwap(nil, line)
			}
		}), nil))
		r := start(t, s, func(context.Context, *sluice.Record) error { return nil }, o)
		pass(30 * time.Second)
		fence.Store(true)
		pass(4 * time.Second)
		if log := r.log(); log != "started a, lease lost a, started a" {
			t.Errorf("events: %s", log)
		}
		if line, _ := logged.Load().(string); !strings.Contains(line, "level=WARN") || !strings.Contains(line, "this one claims it again if none does") {
			t.Errorf("the log of the lost shard: %s", line)
		}
		r.mustEnd()
	})
}

// A heartbeat counts from its sending, however late the answer is: others may have
// seen it as early as that.
func TestALateAnswerProvesNoLongerLife(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		s.table("orders", &stubShard{id: "a"})
		o := testOptions(sharedStore{Store: state.NewMemory(), heartbeat: func() error {
			time.Sleep(6 * time.Second)
			return nil
		}}, "orders")
		o.Owner = "me"
		r := start(t, s, func(context.Context, *sluice.Record) error { return nil }, o)
		began := time.Now()
		pass(6 * time.Second)
		if p := r.p.owner.proof.Load(); p.of != "me" || !p.sent.Equal(began) {
			t.Errorf("the heartbeat of %v proves the life of %q from %v", began, p.of, p.sent)
		}
		r.mustEnd()
	})
}

func TestHeartbeatsAreOftenEnough(t *testing.T) {
	o := testOptions(sharedStore{Store: state.NewMemory()}, "orders")
	o.HeartbeatEvery = 4 * time.Second
	if _, err := New(newStub().config(), one{}, o); err == nil || !strings.Contains(err.Error(), "Options.HeartbeatEvery is 4s") {
		t.Errorf("New with too few heartbeats: %v", err)
	}
}

// heldStore is a store in which another owner has all shards until it ends.
type heldStore struct {
	sharedStore
	over   atomic.Bool
	vacant chan struct{}
}

func (h *heldStore) Vacant() <-chan struct{} {
	if h.over.Load() {
		return nil
	}
	return h.vacant
}

func (h *heldStore) Claim(ctx context.Context, st state.Stream, id, parent, owner string) (state.Shard, error) {
	if !h.over.Load() {
		return state.Shard{}, state.ErrHeld
	}
	return h.Store.Claim(ctx, st, id, parent, owner)
}

// The shards of an owner that has ended are claimed at once, not when their turn comes.
func TestClaimsAtTheEndOfAnOwner(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), &heldStore{sharedStore: sharedStore{Store: state.NewMemory()}, vacant: make(chan struct{})}
		a := &stubShard{id: "a"}
		s.table("orders", a)
		s.put(a, "x")
		var got sink
		r := start(t, s, got.handle, testOptions(store, "orders"))
		pass(10*time.Second + heldRetry/2)
		want(t, "handled while another owner has them", got.all(), "")
		store.over.Store(true)
		close(store.vacant)
		pass(heldRetry / 10)
		want(t, "handled after its end", got.all(), "a/1")
		r.mustEnd()
	})
}
