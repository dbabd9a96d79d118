package flow

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

func TestWhenAnOutageBegins(t *testing.T) {
	for _, c := range []struct {
		name      string
		items     int
		good      time.Duration // one record succeeds so often; 0: none
		from, end State
	}{
		{"six items", 6, 0, Partial, Outage},
		{"four items, which are retried only", 4, 0, Partial, Partial},
		{"three items", 3, 0, Works, Works},
		{"others succeed now and then", 3, time.Second, Works, Works},
		{"many fail, others succeed", 20, time.Second, Partial, Partial},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, f := openSink(t, failsFor("bad"))
				g := f.group
				n := uint64(0)
				for ; n < uint64(c.items); n++ {
					mustSubmit(t, f, rec(fmt.Sprint("bad", n), int(n)+1))
					if n == 0 { // from the first failure on calls are counted
						time.Sleep(time.Millisecond)
					}
				}
				for i := range 200 { // 20 s
					if at := time.Duration(i) * 100 * time.Millisecond; at > 0 && at < 2*time.Second && g.States()[0].State == Outage {
						t.Errorf("outage after %v", at)
					}
					if c.good > 0 && time.Duration(i)*100*time.Millisecond%c.good == 0 {
						n++
						mustSubmit(t, f, rec(fmt.Sprint("good", n), int(n)))
					}
					time.Sleep(100 * time.Millisecond)
				}
				if s := g.States()[0]; s.State != c.end || (s.State >= Partial) != (s.Trouble() != "") {
					t.Errorf("%v after 20 s, want %v; trouble %q", s.State, c.end, s.Trouble())
				}
				giveUp(f)
				if s := g.States()[0]; s.State != Works || s.Failing != 0 || s.Waiting != 0 {
					t.Errorf("with nothing left: %+v", s)
				}
			})
		})
	}
}

// Records come in bursts. In the pauses only those that failed before are tried,
// so that nothing succeeds: that says nothing new of the route.
func TestAPauseIsNoOutage(t *testing.T) {
	for _, c := range []struct {
		name  string
		bad   func(n int) bool // of 20 items in a burst
		slow  time.Duration    // a failure takes so long; below zero, a success does
		pause time.Duration
		want  State
	}{
		{"three are poison", func(n int) bool { return n < 3 }, 0, 5 * time.Second, Works},
		{"1 in 5 fails", func(n int) bool { return n%5 == 0 }, 0, 5 * time.Second, Partial},
		{"1 in 2 fails", func(n int) bool { return n%2 == 0 }, 0, 30 * time.Second, Partial},
		{"1 in 2 fails, late", func(n int) bool { return n%2 == 0 }, time.Second, 30 * time.Second, Partial},
		{"1 in 3 fails, and what succeeds is slower", func(n int) bool { return n%3 == 0 }, -3 * time.Second, 5 * time.Second, Partial},
		{"1 in 2 fails, for over a minute", func(n int) bool { return n%2 == 0 }, 0, 90 * time.Second, Outage},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := Open(t.Context(), routes(func(_ context.Context, r *sluice.Record) error {
					if !strings.HasPrefix(keyOf(r), "bad") {
						time.Sleep(-c.slow)
						return nil
					}
					time.Sleep(c.slow)
					return errDown
				}), Options{Logger: quiet, DeadLetter: &letters{}})
				worst, moves, last, n, begun := Works, 0, Works, 0, time.Now()
				for time.Since(begun) < 9*time.Minute {
					for i := range 20 {
						n++
						key := fmt.Sprint("good", i)
						if c.bad(i) {
							key = fmt.Sprint("bad", i)
						}
						mustSubmit(t, f, rec(key, n))
					}
					for range c.pause / (100 * time.Millisecond) {
						time.Sleep(100 * time.Millisecond)
						s := f.group.States()[0]
						if s.State != last {
							moves++
						}
						worst, last = max(worst, s.State), s.State
						if time.Since(begun) > 2*time.Second && (s.Trouble() == "") != (c.want == Works) {
							t.Errorf("trouble %q in %v", s.Trouble(), s.State)
						}
					}
				}
				if worst != c.want || worst < Outage && moves > 1 {
					t.Errorf("%v and %d moves, want %v and no more than one", worst, moves, c.want)
				}
				giveUp(f)
				<-f.Idle()
			})
		})
	}
}
