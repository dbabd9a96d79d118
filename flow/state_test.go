package flow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// A route on which nothing but one error happened counts nothing 11 minutes
// later, whatever its calls return since.
func TestARouteIsCalmAgain(t *testing.T) {
	for name, outcome := range map[string]error{
		"success": nil, "skip": sluice.Skip("nothing to write"),
	} {
		for how, err := range map[string]error{"plain": errDown, "overloaded": sluice.Overloaded(errDown)} {
			synctest.Test(t, func(t *testing.T) {
				var failed atomic.Int64
				f := Open(t.Context(), routes(func(_ context.Context, r *sluice.Record) error {
					if failed.Add(1) <= 3 {
						return err
					}
					return outcome
				}), Options{Logger: quiet})
				for i := range 11*60 + 5 {
					mustSubmit(t, f, rec(fmt.Sprint("x", i%10), i+1))
					time.Sleep(time.Second)
				}
				if g := f.group.gates[0]; !g.calm.Load() {
					t.Errorf("%s, then %s: not calm: state %v, limit %v, %d failed", how, name, g.state, g.limiter.limit, len(g.items.failed))
				}
				mustClose(t, f, 11*60+5)
			})
		}
	}
}

// The poison clock stands still while nobody tries the item.
func TestThePoisonClockStopsBetweenRecords(t *testing.T) {
	for name, end := range map[string]error{
		"skip": sluice.Skip("old"), "permanent": sluice.Permanent(errDown),
	} {
		synctest.Test(t, func(t *testing.T) {
			var d letters
			var calls atomic.Int64
			f := Open(t.Context(), routes(func(_ context.Context, r *sluice.Record) error {
				if keyOf(r) != "x" {
					return nil
				}
				switch n := calls.Add(1); {
				case n <= 8:
					return errDown
				case n == 9:
					return end
				case n == 10:
					return errDown // once
				}
				return nil
			}), Options{Logger: quiet, DeadLetter: &d})
			mustSubmit(t, f, rec("x", 1))
			n := 1
			for range 10*60 + 30 {
				n++
				mustSubmit(t, f, rec(fmt.Sprint("good", n%50), n))
				time.Sleep(time.Second)
			}
			if n := calls.Load(); n != 9 {
				t.Fatalf("%d calls", n)
			}
			parked := len(d.all())
			n++
			mustSubmit(t, f, rec("x", n))
			mustClose(t, f, uint64(n))
			if len(d.all()) != parked {
				t.Errorf("after a %s: a record is parked for its first failure", name)
			}
		})
	}
}

// Whoever looks at a route may see first that its state has ended. The log must
// tell it all the same.
func TestALookAtARouteDoesNotKeepTheEndOfAStateFromTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(&sluice.Route{})
		for i := range uint64(4) {
			g.wait()
			g.ended(nil, i+1, failed, errDown)
		}
		if s, moved := g.news(); !moved || s.State != Partial {
			t.Errorf("the log hears %v, %v", s.State, moved)
		}
		for i := range uint64(3) {
			g.ended(nil, i+1, succeeded, nil)
		}
		time.Sleep(2 * partialAtLeast)
		if s := g.report().State; s != Works {
			t.Errorf("state %v", s)
		}
		if _, moved := g.ended(nil, 4, succeeded, nil); !moved {
			t.Error("the log does not hear that the route works again")
		}
		if s, moved := g.news(); !moved || s.State != Works {
			t.Errorf("the log hears %v, %v", s.State, moved)
		}
		if _, moved := g.ended(nil, 4, succeeded, nil); moved {
			t.Error("the log hears it twice")
		}
	})
}

// A limit was learned; calls that have nothing to do must not be bound by it for
// ever, nor one that binds nobody because the route's own limits are lower.
func TestALearnedLimitIsForgotten(t *testing.T) {
	if localtest.Elsewhere(t) { // 73,000 records
		return
	}
	for name, c := range map[string]struct {
		outcome     error
		rate        float64
		concurrency int
		records     int
		within      time.Duration
	}{
		"skips":                   {sluice.Skip("nothing to write"), 0, 0, 20_000, 30 * time.Second},
		"permanent":               {sluice.Permanent(errDown), 0, 0, 20_000, 30 * time.Second},
		"a rate binds":            {nil, 10, 0, 3000, 5*time.Minute + 10*time.Second},
		"route concurrency binds": {nil, 0, 2, 30_000, 5*time.Minute + 30*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var works atomic.Bool
				m := routes(func(context.Context, *sluice.Record) error {
					time.Sleep(20 * time.Millisecond)
					if !works.Load() {
						return sluice.Overloaded(errDown)
					}
					return c.outcome
				})
				m.routes[0].Rate, m.routes[0].Concurrency = c.rate, c.concurrency
				f := Open(t.Context(), m, Options{Logger: quiet, DeadLetter: &letters{}})
				g := f.group.gates[0]
				mustSubmit(t, f, many("first", 2)...) // too few for an outage
				for range 10 {
					time.Sleep(time.Second)
				}
				g.mu.Lock()
				if g.limiter.limit == 0 { // calls that were not counted yet say nothing of it
					g.limiter.cut(1, time.Now())
					g.judge(time.Now())
				}
				g.mu.Unlock()
				works.Store(true)
				start := time.Now()
				submitted := make(chan struct{})
				go func() {
					mustSubmit(t, f, many("x", c.records)...)
					close(submitted)
				}()
				over := false
				for !over && f.Settled() < uint64(c.records*3/4) {
					<-f.Changed()
					over = g.report().State == Works
				}
				<-submitted
				if c.outcome == nil && !over {
					t.Errorf("%+v after %v", g.report(), time.Since(start))
				}
				mustClose(t, f, uint64(c.records)+2)
				if took := time.Since(start); took > c.within {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// sink fails as down says and keeps what it was called with.
type sink struct {
	mu    sync.Mutex
	down  func(key string) error
	calls []string
	times []time.Duration
	begun time.Time
}

func (s *sink) handle(_ context.Context, r *sluice.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, keyOf(r))
	s.times = append(s.times, time.Since(s.begun))
	return s.down(keyOf(r))
}

// set has the sink fail as down says, and forgets its calls.
func (s *sink) set(down func(key string) error) (calls []string, times []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls, times, s.calls, s.times, s.down = s.calls, s.times, nil, nil, down
	return calls, times
}

func openSink(t *testing.T, down func(key string) error) (*sink, *Flow) {
	s := &sink{down: down, begun: time.Now()}
	return s, Open(t.Context(), routes(s.handle), Options{Logger: quiet, DeadLetter: &letters{}})
}

func failsFor(prefix string) func(key string) error {
	return func(key string) error {
		if strings.HasPrefix(key, prefix) {
			return errDown
		}
		return nil
	}
}

func TestProbesOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := func(string) error { return errDown }
		s, f := openSink(t, down)
		beginOutage(t, f, 10)
		time.Sleep(time.Minute) // the pause has grown
		s.set(down)
		time.Sleep(5 * time.Minute)
		calls, times := s.set(down)
		counts := map[string]int{}
		for i, key := range calls {
			counts[key]++
			if i > 0 && (times[i]-times[i-1] > 4*time.Second || times[i]-times[i-1] < 2*time.Second) {
				t.Errorf("%v between two probes", times[i]-times[i-1])
			}
		}
		least, most := len(calls), 0
		for _, n := range counts {
			least, most = min(least, n), max(most, n)
		}
		if len(counts) != 10 || most > least+1 {
			t.Errorf("probes are not fair among items: %v", counts)
		}

		mustSubmit(t, f, many("fresh", 9)...)
		s.set(down)
		time.Sleep(time.Minute)
		calls, _ = s.set(func(string) error { return nil })
		fresh := 0
		for _, key := range calls[:min(12, len(calls))] {
			if strings.HasPrefix(key, "fresh") {
				fresh++
			}
		}
		if fresh != 9 {
			t.Errorf("%d of 12 probes are of records that were never tried, want three of four: %q", fresh, calls)
		}

		time.Sleep(maxPause)
		synctest.Wait()
		if st := f.group.States()[0]; st.State == Outage || st.Failing != 0 {
			t.Errorf("after a success: %+v", st)
		}
		mustClose(t, f, 19)
	})
}

// What says nothing of the route lets the next probe go at once.
func TestASkipLetsTheNextProbeGo(t *testing.T) {
	for _, err := range []error{sluice.Skip("old"), sluice.Permanent(errDown), sluice.RetryAfter(time.Hour, errDown)} {
		synctest.Test(t, func(t *testing.T) {
			s, f := openSink(t, func(string) error { return errDown })
			beginOutage(t, f, 5)
			s.set(func(key string) error {
				if strings.HasPrefix(key, "x") {
					return err
				}
				return errDown
			})
			time.Sleep(time.Minute)
			mustSubmit(t, f, many("x", 2000)...)
			from := time.Now()
			for f.group.States()[0].Waiting > 5 && time.Since(from) < time.Hour && !sluiceWish(err) {
				time.Sleep(time.Second)
			}
			if took := time.Since(from); took > time.Minute {
				t.Errorf("%v: 2000 records took %v in an outage", err, took)
			}
			giveUp(f)
		})
	}
}

func sluiceWish(err error) bool { var r *outcomes.Retry; return errors.As(err, &r) }

func TestWhenAPartialOutageEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := openSink(t, failsFor("bad"))
		n := 0
		submit := func(key string) {
			n++
			mustSubmit(t, f, rec(key, n))
		}
		for i := range 30 {
			submit(fmt.Sprint("bad", i))
			submit(fmt.Sprint("good", i))
			time.Sleep(100 * time.Millisecond)
		}
		if st := f.group.States()[0]; st.State != Partial || st.Failing != 30 || st.Trouble() == "" {
			t.Errorf("30 items fail: %+v", st)
		}
		s.set(failsFor("bad1")) // 11 items
		traffic := func() {
			for range 120 { // a minute
				submit("good")
				time.Sleep(500 * time.Millisecond)
			}
		}
		traffic()
		if st := f.group.States()[0]; st.State != Partial {
			t.Errorf("11 items fail: %+v", st)
		}
		s.set(failsFor("bad2")) // none: those have succeeded
		traffic()
		time.Sleep(2 * time.Minute)
		if st := f.group.States()[0]; st.State != Works || st.Trouble() != "" {
			t.Errorf("none fails: %+v", st)
		}
		mustClose(t, f, uint64(n))
	})
}

func TestTwoFlowsShareALearnedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var busy atomic.Int64
		m := routes(func(context.Context, *sluice.Record) error {
			defer busy.Add(-1)
			if busy.Add(1) > 4 {
				return sluice.Overloaded(errDown)
			}
			time.Sleep(10 * time.Millisecond)
			return nil
		})
		o := Options{Logger: quiet, Group: NewGroup(m)}
		f, g := Open(t.Context(), m, o), Open(t.Context(), m, o)
		go mustSubmit(t, f, many("f", 4000)...)
		go mustSubmit(t, g, many("g", 4000)...)
		time.Sleep(8 * time.Second) // 800 records each
		a, b := f.Settled(), g.Settled()
		time.Sleep(8 * time.Second)
		if a, b = f.Settled()-a, g.Settled()-b; a < 400 || b < 400 || a > 2*b || b > 2*a {
			t.Errorf("%d and %d records in 8 s", a, b)
		}
		closed := make(chan struct{})
		go func() { giveUp(f); close(closed) }()
		<-closed
		time.Sleep(time.Minute)
		mustClose(t, g, 4000)
	})
}

// Few items that are refused for hours, and no others, are no outage: but somebody
// is to look.
func TestNothingSucceedsForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error {
			return sluice.Overloaded(errDown)
		}), Options{Logger: quiet, DeadLetter: &letters{}})
		mustSubmit(t, f, many("x", 3)...)
		time.Sleep(proofAfter - time.Minute)
		if got := f.group.States()[0].Trouble(); got != "" {
			t.Errorf("too early: %q", got)
		}
		time.Sleep(2 * time.Minute)
		if got := f.group.States()[0].Trouble(); !strings.Contains(got, "the 3 records that wait") || !strings.Contains(got, errDown.Error()) {
			t.Errorf("%q", got)
		}
		giveUp(f)
	})
}

func TestTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		ago := func(d time.Duration) time.Time { return now.Add(-d) }
		for _, c := range []struct {
			name string
			s    RouteState
			want string // "": ready
		}{
			{"works", RouteState{}, ""},
			{"a few items fail", RouteState{Failing: 3, Success: now}, ""},
			{"and nothing succeeds, since lately", RouteState{Failing: 3, failsSince: ago(proofAfter)}, ""},
			{"and nothing succeeds, for long", RouteState{Failing: 3, failsSince: ago(proofAfter + 1)}, "nothing has succeeded since"},
			{"all is refused for long", RouteState{State: Overloaded, Limit: 1, failsSince: ago(proofAfter + 1)}, "nothing has succeeded since"},
			{"nothing succeeded because nothing came", RouteState{Failing: 1, Success: ago(time.Hour), failsSince: now}, ""},
			{"overloaded", RouteState{State: Overloaded, Limit: 3}, ""},
			{"recovering", RouteState{State: Recovering, Limit: 1}, ""},
			{"partial", RouteState{State: Partial, Failing: 4, Success: now}, "works for others"},
			{"partial, and nothing ever succeeded", RouteState{State: Partial, Failing: 4, failsSince: now}, "nothing has succeeded since"},
			{"outage", RouteState{State: Outage, Failing: 4}, "fails for every record"},
			{"some are parked", RouteState{Parked: parkedAtMost}, ""},
			{"many are parked", RouteState{Parked: parkedAtMost + 1}, "records parked"},
		} {
			got := c.s.Trouble()
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%s: %q", c.name, got)
			}
		}
	})
}
