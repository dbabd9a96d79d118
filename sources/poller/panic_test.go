package poller

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/state"
)

// What panics behind each good poll leaves the shard where it is: the poller is not
// ready, and is again once the shard goes on.
func TestPanicBehindEachPollIsNotReady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		s.put(a, "k")
		var broken atomic.Bool
		broken.Store(true)
		var got sink
		o := testOptions(store, "orders")
		o.Hooks.Polled = func(Poll) {
			if broken.Load() {
				panic("hook")
			}
		}
		p, err := New(s.config(), matcher(got.handle), o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		for range 10 {
			pass(time.Minute)
			if h := p.NotReady(); len(h) == 0 || !strings.Contains(strings.Join(h, " "), "reading it fails again and again") {
				t.Errorf("ready %v with %q, want the shard that fails", len(h) == 0, h)
			}
		}
		broken.Store(false)
		pass(time.Minute)
		if h := p.NotReady(); len(h) > 0 {
			t.Errorf("not ready once it goes on: %q", h)
		}
		want(t, "handled", got.all(), "a/1")
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A panic outside the handlers ends one shard, visibly, and it is begun again.
func TestPanicIsOneShards(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a, b := &stubShard{id: "a"}, &stubShard{id: "b"}
		s.table("orders", a, b)
		s.put(a, "k")
		s.put(b, "k")
		var panicked atomic.Bool
		var got sink
		p, err := New(s.config(), matcher(got.handle), func() Options {
			o := testOptions(store, "orders")
			o.Hooks.Polled = func(p Poll) {
				if p.Shard.ID == "a" && !panicked.Swap(true) {
					panic("hook")
				}
			}
			return o
		}())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		pass(time.Second)
		want(t, "handled", got.all(), "b/1")
		pass(10 * time.Second)
		want(t, "handled later", got.all(), "b/1 a/1")
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
