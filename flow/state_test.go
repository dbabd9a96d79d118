package flow

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// A route on which nothing but one error happened counts nothing 11 minutes
// later, whatever its calls return since.
func TestARouteIsCalmAgain(t *testing.T) {
	for name, outcome := range map[string]error{
		"success": nil, "skip": sluice.Skip("nothing to write"),
	} {
		for how, err := range map[string]error{"plain": errDown, "overloaded": sluice.Overloaded(errDown)} {
			synctest.Test(t, func(t *testing.T) {
				failed := 0
				f := Open(t.Context(), routes(func(_ context.Context, r *sluice.Record) error {
					if failed++; failed <= 3 {
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
			calls := 0
			f := Open(t.Context(), routes(func(_ context.Context, r *sluice.Record) error {
				if keyOf(r) != "x" {
					return nil
				}
				switch calls++; {
				case calls <= 8: // for about a minute
					return sluice.RetryAfter(0, errDown)
				case calls == 9:
					return end
				case calls == 10:
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
			if calls != 9 {
				t.Fatalf("%d calls", calls)
			}
			parked := len(d.failures)
			n++
			mustSubmit(t, f, rec("x", n))
			mustClose(t, f, uint64(n))
			if len(d.failures) != parked {
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
		for i := range uint64(3) {
			g.ended(nil, i+1, succeeded, nil)
		}
		time.Sleep(2 * partialAtLeast)
		if s := g.report().State; s != Works {
			t.Errorf("state %v", s)
		}
		if _, moved := g.ended(nil, 4, succeeded, nil); !moved {
			t.Error("nobody is told that the route works again")
		}
		if _, moved := g.ended(nil, 4, succeeded, nil); moved {
			t.Error("it is told twice")
		}
	})
}

// A limit was learned; calls that have nothing to do must not be bound by it for
// ever, nor one that binds nobody because the route's own limits are lower.
func TestALearnedLimitIsForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		outcome     error
		rate        float64
		concurrency int
		records     int
		within      time.Duration
	}{
		"skips":                   {sluice.Skip("nothing to write"), 0, 0, 20_000, 30 * time.Second},
		"permanent":               {sluice.Permanent(errDown), 0, 0, 20_000, 30 * time.Second},
		"a rate binds":            {nil, 10, 0, 3000, 5*time.Minute + time.Second},
		"route concurrency binds": {nil, 0, 2, 30_000, 5*time.Minute + 30*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refuses := true
				m := routes(func(context.Context, *sluice.Record) error {
					time.Sleep(20 * time.Millisecond)
					if refuses {
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
				refuses = false
				start := time.Now()
				mustSubmit(t, f, many("x", c.records)...)
				over := false
				for !over && f.Settled() < uint64(c.records*3/4) {
					<-f.Changed()
					over = g.report().State == Works
				}
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
