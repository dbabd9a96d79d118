//go:build integration || long

package poller

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
)

// A process that ends every few minutes, and never settles the old stream, does
// not hold the new one back until its records are trimmed.
func TestACrashLoopDoesNotHoldANewStreamBack(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, lives := range []time.Duration{9 * time.Minute, time.Minute, 15 * time.Second} {
		t.Run(lives.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), state.NewMemory()
				old := s.enable("orders", s.filled("a", 1))
				got := &gate{shard: "a", open: make(chan struct{})}
				o := slowly(testOptions(store, "orders"))
				o.Grace = time.Second
				r := start(t, s, got.handle, o)
				pass(time.Minute)
				r.mustEnd()
				s.disable(old)
				s.enable("orders", s.filled("b", 2))
				pass(22*time.Hour + 30*time.Minute)
				trim := time.Now().Add(90 * time.Minute)
				for got.all() == "" && time.Now().Before(trim) {
					r := start(t, s, got.handle, o)
					pass(lives)
					r.mustEnd()
				}
				want(t, "handled before the trim", got.all(), "b/1 b/2")
				close(got.open)
			})
		})
	}
}

// How long the old stream comes first is told by the service's clock: the new
// one's records expire by it.
func TestANewStreamUnderASlowClock(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		s, store := behind{newStub(), -2 * time.Hour}, state.NewMemory()
		old := s.enable("orders", s.filled("a", 1))
		got := &gate{shard: "a", open: make(chan struct{})}
		o := slowly(testOptions(store, "orders"))
		r := start(t, s, got.handle, o)
		pass(time.Minute)
		s.disable(old)
		s.enable("orders", s.filled("b", 1))
		pass(19 * time.Hour)
		want(t, "handled by the service's 21st hour", got.all(), "")
		pass(80 * time.Minute)
		want(t, "handled by the service's 23rd hour", got.all(), "b/1")
		close(got.open)
		r.mustEnd()
	})
}
