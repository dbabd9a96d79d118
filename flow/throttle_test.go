package flow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// throttled is routes that an operator pauses and slows at random, under flows that
// end and begin again at random. Its methods run in a synctest bubble.
type throttled struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	m     *table
	group *Group

	mu     sync.Mutex
	calls  *rand.Rand // of handlers
	log    []sluice.Record
	takes  map[int]int    // of each record: its route
	done   map[int]bool   // records that have succeeded
	last   map[string]int // of each item: the last record that was begun in this flow
	first  map[string]int // of each item: the last record that has succeeded
	paused [3]bool
	limit  [3]int
	runs   [3]int
	now    [3]map[int]bool // of runs: the records
	before [3]map[int]bool // of these: their calls began before the last Throttle
}

func (w *throttled) errorf(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("seed %d: "+format, append([]any{w.seed}, args...)...)
}

func newThrottled(t *testing.T, seed uint64) *throttled {
	w := &throttled{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), calls: rand.New(rand.NewPCG(seed, 2)), takes: map[int]int{}, done: map[int]bool{}, first: map[string]int{}}
	handler := func(route int) sluice.Handler {
		return func(_ context.Context, r *sluice.Record) error {
			n, key := nth(r), keyOf(r)
			w.mu.Lock()
			w.runs[route]++
			w.now[route][n] = true
			if w.paused[route] {
				w.errorf("record %d: route %d is called in a pause", n, route)
			}
			if l := w.limit[route]; l > 0 && w.runs[route] > l {
				w.errorf("route %d: %d calls at a time, want %d", route, w.runs[route], l)
			}
			if n < w.last[key] {
				w.errorf("record %d of item %s is called after %d", n, key, w.last[key])
			}
			w.last[key] = n
			took, fails := time.Duration(w.calls.IntN(30))*time.Millisecond, w.calls.IntN(20) == 0
			w.mu.Unlock()
			time.Sleep(took)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.runs[route]--
			delete(w.now[route], n)
			delete(w.before[route], n)
			if fails {
				return errDown
			}
			if !w.done[n] && n < w.first[key] {
				w.errorf("record %d of item %s succeeds after %d", n, key, w.first[key])
			}
			w.done[n], w.first[key] = true, max(n, w.first[key])
			return nil
		}
	}
	for i := range w.now {
		w.now[i] = map[int]bool{}
	}
	w.m = routes(handler(0), handler(1), handler(2))
	w.m.pick = func(r *sluice.Record) ([]int, error) { return []int{w.takes[nth(r)]}, nil }
	w.group = NewGroup(w.m)
	return w
}

// throttle throttles a route at random once no call of it runs that began before.
func (w *throttled) throttle(route int) {
	how := Throttle{}
	switch w.rng.IntN(4) {
	case 0:
		how.Paused = true
	case 1:
		how.Concurrency = 1 + w.rng.IntN(3)
	case 2:
		how.Rate = 20 + 50*w.rng.Float64()
	}
	if !how.Paused {
		w.mu.Lock()
		w.paused[route] = false
		w.mu.Unlock()
	}
	synctest.Wait()
	w.mu.Lock()
	w.limit[route], w.before[route] = 0, maps.Clone(w.now[route])
	w.mu.Unlock()
	w.group.Throttle(w.m.routes[route].Name, how)
	for { // calls that ran go on, and do not count in the limit
		synctest.Wait()
		w.mu.Lock()
		runs := len(w.before[route])
		w.mu.Unlock()
		if runs == 0 || how.Concurrency == 0 && !how.Paused {
			break
		}
		time.Sleep(time.Millisecond)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused[route], w.limit[route] = how.Paused, how.Concurrency
}

// Pauses lose and reorder no record, whatever else happens: other routes go on,
// failures, restarts, the end of the pause.
func TestThrottledRoutesAtRandom(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w := newThrottled(t, seed)
			const all = 600
			keys := 1 + w.rng.IntN(60)
			for n := 1; n <= all; n++ {
				w.log = append(w.log, rec(fmt.Sprint(w.rng.IntN(keys)), n))
				w.takes[n] = w.rng.IntN(3)
			}
			var base uint64
			for restarts := 0; base < all; restarts++ {
				if restarts > 30 {
					for i := range w.m.routes {
						w.mu.Lock()
						w.paused[i], w.limit[i] = false, 0
						w.mu.Unlock()
						w.group.Throttle(w.m.routes[i].Name, Throttle{})
					}
				}
				w.mu.Lock()
				w.last = map[string]int{}
				w.mu.Unlock()
				f := Open(t.Context(), w.m, Options{Logger: quiet, Group: w.group, DeadLetter: &letters{}, Window: 1 + w.rng.IntN(100)})
				ctx, stop := context.WithCancel(t.Context())
				submitted := make(chan struct{})
				go func() {
					defer close(submitted)
					_, _ = f.Submit(ctx, w.log[base:]...)
				}()
				for range 1 + w.rng.IntN(10) {
					w.throttle(w.rng.IntN(3))
					time.Sleep(time.Duration(w.rng.IntN(1000)) * time.Millisecond)
				}
				stop()
				<-submitted
				if restarts <= 30 {
					f.Leave()
				}
				n, err := f.Close(context.Background())
				if err != nil && !errors.Is(err, errPaused) {
					w.errorf("Close: %v", err)
				}
				for i := base; i < base+n; i++ {
					if !w.done[int(i)+1] {
						w.errorf("record %d is lost", i+1)
					}
				}
				base += n
			}
		})
	}
}

// onTwo is routes a and b; items whose key begins with a take a, others b.
func onTwo(a, b sluice.Handler) *table {
	m := routes(a, b)
	m.pick = func(r *sluice.Record) ([]int, error) {
		if strings.HasPrefix(keyOf(r), "a") {
			return []int{0}, nil
		}
		return []int{1}, nil
	}
	return m
}

// live is a record of the stream that was created at a time.
func live(key string, n int, created time.Time) sluice.Record {
	r := rec(key, n)
	r.Created = created
	return r
}

// Other routes go on until the window is full. Nothing of the pause looks like an
// outage, and its records go on at its end.
func TestPausedRouteFillsTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b atomic.Int64
		m := onTwo(func(context.Context, *sluice.Record) error { a.Add(1); return nil }, func(context.Context, *sluice.Record) error { b.Add(1); return nil })
		g := NewGroup(m)
		f := Open(t.Context(), m, Options{Logger: quiet, Group: g, Window: 10, DeadLetter: &letters{}})
		if g.Throttle("c", Throttle{Paused: true}) || !g.Throttle("a", Throttle{Paused: true}) {
			t.Error("Throttle does not know the routes")
		}
		submitted := make(chan struct{})
		go func() {
			defer close(submitted)
			for i := 1; i <= 50; i++ {
				mustSubmit(t, f, live(fmt.Sprint(string("ab"[i%2]), i), i, time.Now()))
			}
		}()
		time.Sleep(9 * time.Hour)
		if why, _ := f.Full(); why == "" || a.Load() != 0 || b.Load() != 10 {
			t.Errorf("%d calls of the paused route, %d of the other; full: %q", a.Load(), b.Load(), why)
		}
		if held, route := f.Held(), f.Paused(); len(held) != 0 || route != "a" {
			t.Errorf("held: %v; paused: %q", held, route)
		}
		s := g.States()[0]
		if age := time.Since(s.Oldest); s.State != Works || s.Waiting != 10 || !s.Throttle.Paused || age != 9*time.Hour || s.Trouble() != "" {
			t.Errorf("%+v, %v old: %s", s, age, s.Trouble())
		}
		time.Sleep(10 * time.Hour)
		if trouble := g.States()[0].Trouble(); !strings.Contains(trouble, "paused by an operator") || !strings.Contains(trouble, "sluice route resume") {
			t.Errorf("5 hours before the loss: %q", trouble)
		}
		g.Throttle("a", Throttle{})
		<-submitted
		mustClose(t, f, 50)
		if s := g.States()[0]; !s.Oldest.IsZero() || s.Waiting != 0 || s.Trouble() != "" || len(g.flows) > 0 {
			t.Errorf("afterwards: %+v", s)
		}
	})
}

// The oldest waiting record is looked for only now and then: that is a look at all.
func TestTheOldestIsSeldomLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks int
		m := onTwo(ok, ok)
		g := NewGroup(m)
		g.Throttle("a", Throttle{Paused: true})
		f := Open(t.Context(), m, Options{Logger: quiet, Group: g, Clock: func() time.Time { looks++; return time.Now() }})
		g.States() // none waits
		mustSubmit(t, f, live("a", 1, time.Now()), live("a2", 2, time.Now()))
		synctest.Wait()
		begin := time.Now()
		looks = 0
		for range 20 {
			if s := g.States()[0]; !s.Oldest.Equal(begin) {
				t.Fatalf("oldest %v, want %v", s.Oldest, begin)
			}
			time.Sleep(lookEvery / 25)
		}
		if looks != 2 {
			t.Errorf("%d looks at two records", looks)
		}
		g.Throttle("a", Throttle{})
		mustClose(t, f, 2)
	})
}

// A record is of a paused route only if nothing else is left of it.
func TestPausedAndOtherRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mended atomic.Bool
		m := routes(ok, func(context.Context, *sluice.Record) error {
			if mended.Load() {
				return nil
			}
			return errDown
		})
		g := NewGroup(m)
		g.Throttle("a", Throttle{Paused: true})
		f := Open(t.Context(), m, Options{Logger: quiet, Group: g})
		mustSubmit(t, f, rec("x", 1))
		time.Sleep(time.Minute)
		if route := f.Paused(); route != "" {
			t.Errorf("paused: %q, though route b is retried", route)
		}
		mended.Store(true)
		time.Sleep(time.Minute)
		if route := f.Paused(); route != "a" {
			t.Errorf("paused: %q, want a", route)
		}
		g.Throttle("a", Throttle{})
		mustClose(t, f, 1)
	})
}

// The burst of a route's options is none while the route is slowed.
func TestSlowedRouteHasNoBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := routes(ok)
		m.routes[0].Rate, m.routes[0].Burst = 1000, 20
		group := NewGroup(m)
		f := Open(t.Context(), m, Options{Logger: quiet, Group: group})
		group.Throttle("a", Throttle{Rate: 2})
		time.Sleep(time.Minute)
		begin := time.Now()
		mustSubmit(t, f, many("x", 11)...)
		mustClose(t, f, 11)
		if took := time.Since(begin); took < 5*time.Second || took > 6*time.Second {
			t.Errorf("2 calls a second: %v for 11", took)
		}
	})
}

func TestSlowedRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		m := routes(func(context.Context, *sluice.Record) error { g.during(time.Second); return nil })
		m.routes[0].Concurrency, m.routes[0].Rate = 8, 1000
		group := NewGroup(m)
		f := Open(t.Context(), m, Options{Logger: quiet, Group: group, Concurrency: 100})
		group.Throttle("a", Throttle{Concurrency: 4, Rate: 100})
		begin := time.Now()
		mustSubmit(t, f, many("x", 40)...)
		for f.Settled() < 40 {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(begin); g.most.Load() != 4 || took < 10*time.Second || took > 11*time.Second {
			t.Errorf("at most 4 calls at a time of 1 s: %d at a time, %v for 40", g.most.Load(), took)
		}
		group.Throttle("a", Throttle{Rate: 2})
		begin = time.Now()
		mustSubmit(t, f, many("y", 40)...)
		for f.Settled() < 80 {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(begin); took < 20*time.Second || took > 22*time.Second {
			t.Errorf("2 calls a second: %v for 40", took)
		}
		group.Throttle("a", Throttle{Concurrency: 100, Rate: 1e6}) // the route's own limits stay
		g.most.Store(0)
		mustSubmit(t, f, many("z", 40)...)
		mustClose(t, f, 120)
		if g.most.Load() != 8 {
			t.Errorf("%d calls at a time, the route allows 8", g.most.Load())
		}
	})
}

// The page of a record that waits for hours is freed, as it is for a failed one.
func TestAPausePinsNoPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := onTwo(ok, ok)
		g := NewGroup(m)
		g.Throttle("a", Throttle{Paused: true})
		f := Open(t.Context(), m, Options{Logger: quiet, Group: g})
		s := paged(t, 1<<20, rec("a", 1), rec("b", 2), rec("a", 3))
		if _, err := f.SubmitPage(t.Context(), s.Page); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if kept := s.kept(); kept == 0 || kept > 10<<10 {
			t.Errorf("%d bytes of a page are kept for two records", kept)
		}
		g.Throttle("a", Throttle{})
		mustClose(t, f, 3)
	})
}
