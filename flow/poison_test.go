package flow

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// Poison that nobody takes is tried at the pace of any other failure.
func TestPoisonWithoutDeadLettersKeepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		f := Open(ctx, routes(func(_ context.Context, r *sluice.Record) error {
			if keyOf(r) != "bad" {
				return nil
			}
			calls.Add(1)
			return errDown
		}), Options{Logger: quiet})
		mustSubmit(t, f, rec("bad", 1))
		for i := range 20 * 60 {
			mustSubmit(t, f, rec(fmt.Sprint("good", i%100), i+2))
			time.Sleep(time.Second)
		}
		if n := calls.Load(); n < 60 || n > 300 {
			t.Errorf("%d calls in 20 minutes", n)
		}
		cancel()
		_, _ = f.Close(t.Context())
	})
}

// A route's own PoisonAfter is the time after which its poison is parked.
func TestPoisonAfterOfARoute(t *testing.T) {
	for _, after := range []time.Duration{time.Minute, 0, 30 * time.Minute} {
		want := cmp.Or(after, 10*time.Minute)
		t.Run(want.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := routes(func(_ context.Context, r *sluice.Record) error {
					if keyOf(r) == "bad" {
						return errDown
					}
					return nil
				})
				m.routes[0].PoisonAfter = after
				dead := &letters{}
				f := Open(t.Context(), m, Options{Logger: quiet, DeadLetter: dead})
				mustSubmit(t, f, rec("bad", 1))
				for i := range 40 * 60 {
					mustSubmit(t, f, rec(fmt.Sprint("good", i%100), i+2))
					time.Sleep(time.Second)
				}
				_, _ = f.Close(t.Context())
				if len(dead.failures) != 1 {
					t.Fatalf("%d parked", len(dead.failures))
				}
				if took := dead.failures[0].LastAt.Sub(dead.failures[0].FirstAt); took < want || took > want+2*time.Minute {
					t.Errorf("parked after %v, want %v and little more", took, want)
				}
			})
		})
	}
}

// Neither the time nor the failures of an outage count against an item, nor those
// of a partial outage.
func TestThePoisonClockStandsWhileTheRouteFails(t *testing.T) {
	const x, others = 0, 10
	fail := func(g *gate) (h history) {
		for item := range uint64(1 + others) {
			if got, _ := g.ended(nil, item, failed, errDown); item == x {
				h = got
			}
		}
		return h
	}
	for name, c := range map[string]struct {
		good bool // calls for others succeed
		want State
	}{
		"outage":         {false, Outage},
		"partial outage": {true, Partial},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(&sluice.Route{})
				g.wait()
				fail(g)
				var h history
				for range 9 * 60 {
					time.Sleep(time.Second)
					if c.good {
						g.ended(nil, 100, succeeded, nil)
					}
					h = fail(g)
				}
				if h.state != c.want {
					t.Fatalf("%v, want %v", h.state, c.want)
				}
				for item := range uint64(200) {
					g.ended(nil, 1+item, succeeded, nil)
				}
				h, _ = g.ended(nil, x, failed, errDown)
				if h.clock > mostQuiet || h.attempts > 2 {
					t.Errorf("the clock shows %v and %d attempts", h.clock, h.attempts)
				}
			})
		})
	}
}

// A call that was under way when an item failed says nothing of the route since:
// in a blip of the whole route such calls still succeed.
func TestOnlyALaterCallVouchesForTheRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(&sluice.Route{})
		g.wait()
		f := &Flow{}
		begin := func() *call { g.mu.Lock(); defer g.mu.Unlock(); return g.begin(f, true, time.Now()) }
		vouched := func() bool {
			h, _ := g.ended(begin(), 7, failed, errDown)
			return h.vouched
		}
		g.ended(begin(), 7, failed, errDown)
		g.done(7, true, true) // poison, and its next change comes
		before := begin()
		if vouched() {
			t.Error("at the first failure")
		}
		g.ended(before, 8, succeeded, nil)
		if vouched() {
			t.Error("by a call that began before the failure")
		}
		g.ended(begin(), 9, succeeded, nil)
		if !vouched() {
			t.Error("not by a call that began after it")
		}
	})
}
