package poller

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
)

// An emulator that was started anew answers for the old stream of a table with
// the new one. What was written before the old position is not passed over.
func TestAStreamThatIsNotTheTablesIsLeft(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for name, restart := range map[string]bool{"while it runs": false, "at a start": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), state.NewMemory()
				old := s.enable("orders", s.filled("a", 3))
				var got sink
				r := start(t, s, got.handle, withBox(store, "orders"))
				pass(time.Second)
				want(t, "handled", got.all(), "a/1 a/2 a/3")
				if restart {
					r.mustEnd()
				}
				pass(time.Hour)
				// The new stream has a shard of the same name, whose numbers begin anew.
				anew := s.filled("a", 4)
				s.with(func() { old.shards = []*stubShard{anew} })
				s.enable("orders", anew)
				got.forget()
				if restart {
					r = start(t, s, got.handle, withBox(store, "orders"))
				}
				pass(10 * time.Minute)
				want(t, "handled", got.all(), "a/4 a/1 a/2 a/3 a/4")
				r.unready("gap")
				r.acknowledge()
				r.unready("")
				r.mustEnd()
				got.forget()
				r = start(t, s, got.handle, withBox(store, "orders"))
				pass(10 * time.Minute)
				want(t, "handled after another start", got.all(), "")
				r.unready("")
				r.mustEnd()
			})
		})
	}
}

// A status that is late by less than a minute says nothing.
func TestALateStatusIsBelieved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := s.filled("a", 1)
		old := s.enable("orders", a)
		var got sink
		o := withBox(store, "orders")
		o.DiscoverEvery = 5 * time.Second
		r := start(t, s, got.handle, o)
		pass(time.Second)
		s.enable("orders", s.filled("b", 1))
		pass(50 * time.Second)
		s.put(a, "a")
		s.disable(old)
		pass(10 * time.Minute)
		want(t, "handled", got.all(), "a/1 a/2 b/1")
		r.acknowledge() // of what was written between the two
		r.unready("")
		r.mustEnd()
	})
}
