package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

func TestPoisonIsParkedWhileTheRouteWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &letters{}
		f := Open(t.Context(), routes(bad(errDown)), Options{Logger: quiet, DeadLetter: d})
		mustSubmit(t, f, rec("good", 1), rec("bad", 2))
		for i := range 600 {
			time.Sleep(time.Second)
			mustSubmit(t, f, rec(fmt.Sprint("good", i), i+3))
		}
		mustClose(t, f, 602)
		if len(d.failures) != 1 || d.failures[0].Attempts < 8 {
			t.Fatalf("parked %+v", d.failures)
		}
		if n := d.failures[0].Attempts; n > 20 {
			t.Errorf("parked after %d attempts", n)
		}
	})
}

func TestAttemptsCountOnlyWhileTheRouteSucceedsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &letters{}
		var calls atomic.Int64
		m := routes(func(ctx context.Context, r *sluice.Record) error {
			if keyOf(r) == "bad" {
				calls.Add(1)
				return errDown
			}
			return nil
		})
		m.routes[0].Attempts, m.routes[0].MaxBackoff = 3, time.Second
		f := Open(t.Context(), m, Options{Logger: quiet, DeadLetter: d})
		mustSubmit(t, f, rec("bad", 1))
		time.Sleep(time.Hour)
		if calls.Load() < 1000 || len(d.all()) != 0 {
			t.Errorf("%d calls, parked %q: a lone record is no proof", calls.Load(), d.all())
		}
		for i := range 3 {
			mustSubmit(t, f, rec("good", i+2))
			time.Sleep(time.Minute)
			if parked := len(d.all()) == 1; parked != (i == 2) {
				t.Errorf("parked %v after %d successes of others", parked, i+1)
			}
		}
		mustClose(t, f, 4)
	})
}

// outage runs items through a route that fails until up is set.
type outage struct {
	up    atomic.Bool
	now   atomic.Int64 // probes at once
	log   log
	group *Group
	m     *table
}

func newOutage() *outage {
	o := &outage{}
	o.m = routes(func(ctx context.Context, r *sluice.Record) error {
		if n := o.now.Add(1); n > 1 && len(o.group.Outages()) > 0 {
			o.log.add("%d probes at once", n)
		}
		defer o.now.Add(-1)
		time.Sleep(10 * time.Millisecond)
		if o.up.Load() {
			return nil
		}
		o.log.add("%s", keyOf(r))
		return errDown
	})
	o.group = NewGroup(o.m)
	return o
}

func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage()
		d := &letters{}
		var moves log
		opts := Options{Logger: quiet, DeadLetter: d, Group: o.group, Concurrency: 2, Hooks: Hooks{
			Breaker: func(r *sluice.Route, open bool, err error) { moves.add("%s %v %v", r.Name, open, err) },
		}}
		f, g := Open(t.Context(), o.m, opts), Open(t.Context(), o.m, opts) // flows of one process share it
		start := time.Now()
		mustSubmit(t, f, recs("1", "2", "3", "4")...)
		mustSubmit(t, g, recs("5", "6", "7", "8")...)
		time.Sleep(10 * time.Hour)
		moves.want(t, "a true down")
		out := o.group.Outages()
		if len(out) != 1 || out[0].Route != "a" || !errors.Is(out[0].Err, errDown) || out[0].Since.Sub(start) > time.Second {
			t.Errorf("outages %+v", out)
		}
		if len(f.Held()) != 4 || len(g.Held()) != 4 {
			t.Errorf("held %+v", f.Held())
		}
		calls := o.log.all()
		if n := len(calls); n < 10*60*2 || n > 10*60*4+20 {
			t.Errorf("%d calls in 10 h, want a probe every 15 to 30 s", n)
		}
		rotation := calls[len(calls)-800:]
		if !slices.Equal(rotation[:792], rotation[8:]) || len(slices.Compact(slices.Sorted(slices.Values(rotation[:8])))) != 8 {
			t.Errorf("probes do not rotate: %q", rotation)
		}
		if len(d.all()) != 0 {
			t.Errorf("parked in an outage: %q", d.all())
		}
		o.up.Store(true)
		up := time.Now()
		mustClose(t, f, 4)
		mustClose(t, g, 4)
		if d := time.Since(up); d > 2*defaultMaxBackoff {
			t.Errorf("settled %v after the end of the outage", d)
		}
		moves.want(t, "a true down", "a false <nil>")
		if out := o.group.Outages(); len(out) != 0 {
			t.Errorf("outages %+v", out)
		}
		for _, line := range calls {
			if len(line) > 1 {
				t.Error(line)
			}
		}
	})
}

func TestOutageEndsInTheDeadLettersForWhatIsTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage()
		d := &letters{}
		f := Open(t.Context(), o.m, Options{Logger: quiet, DeadLetter: d, Group: o.group})
		start := time.Now()
		for i := range 100 {
			r := rec(fmt.Sprint(i), i+1)
			r.Created = start
			mustSubmit(t, f, r)
		}
		old := rec("99", 101) // behind one that waits, and too old when it comes to its turn
		old.Created = start.Add(-time.Hour)
		mustSubmit(t, f, old)
		time.Sleep(19*time.Hour + 59*time.Minute)
		if n := len(d.all()); n != 0 {
			t.Errorf("%d parked before they are 20 h old", n)
		}
		mustClose(t, f, 101)
		if took := time.Since(start); took < 20*time.Hour || took > 20*time.Hour+10*time.Minute {
			t.Errorf("parked after %v", took)
		}
		if len(d.all()) != 101 {
			t.Errorf("%d parked", len(d.all()))
		}
		for i, x := range d.failures {
			if !errors.Is(x.First, errDown) || !errors.Is(x.Last, errDown) || x.Route != "a" {
				t.Errorf("%s is parked for %+v", d.recs[i].Sequence, x)
			}
		}
	})
}

func TestWhatIsTooOldDoesNotWaitForTheEndOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage()
		d := &letters{}
		f := Open(t.Context(), o.m, Options{Logger: quiet, DeadLetter: d, Group: o.group})
		mustSubmit(t, f, many("x", 9)...)
		time.Sleep(time.Hour)
		old := rec("old", 10)
		old.Created = time.Now().Add(-20 * time.Hour)
		mustSubmit(t, f, old)
		synctest.Wait()
		d.want(t, "a 10 0")
		o.up.Store(true)
		mustClose(t, f, 10)
	})
}

// The failure that opens the breaker is no poison, though it be the last one
// that its record had.
func TestNothingIsParkedByTheFailureThatOpensTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &letters{}
		fails := map[string]int{"bad": 2, "x0": 1, "x1": 1, "x2": 1, "x3": 1}
		m := routes(func(ctx context.Context, r *sluice.Record) error {
			if fails[keyOf(r)]--; fails[keyOf(r)] >= 0 {
				return sluice.RetryAfter(time.Hour, errDown)
			}
			return nil
		})
		m.routes[0].Attempts = 2
		g := NewGroup(m)
		f := Open(t.Context(), m, Options{Logger: quiet, DeadLetter: d, Group: g, Concurrency: 1})
		mustSubmit(t, f, recs("good", "bad")...) // counts: the route works
		time.Sleep(10 * time.Minute)
		mustSubmit(t, f, rec("good", 3))
		time.Sleep(10 * time.Minute)
		mustSubmit(t, f, many("x", 4)...)
		time.Sleep(40*time.Minute + time.Millisecond)
		if len(g.Outages()) != 1 {
			t.Error("no outage")
		}
		mustClose(t, f, 7)
		d.want(t)
	})
}

func TestTheBreakerOpensAtTheFifthFailureInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := routes(func(ctx context.Context, r *sluice.Record) error {
			if keyOf(r) == "good" {
				return nil
			}
			return sluice.RetryAfter(time.Hour, errDown)
		})
		g := NewGroup(m)
		f := Open(t.Context(), m, Options{Logger: quiet, Group: g})
		for i, c := range []struct {
			key  string
			open bool
		}{
			{"a", false}, {"b", false}, {"c", false}, {"d", false},
			{"good", false},
			{"e", false}, {"f", false}, {"g", false}, {"h", false}, {"i", true},
		} {
			mustSubmit(t, f, rec(c.key, i+1))
			synctest.Wait()
			if open := len(g.Outages()) == 1; open != c.open {
				t.Errorf("after %s: open %v", c.key, open)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f.Close(ctx)
	})
}

func TestOneItemAloneIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := routes(func(context.Context, *sluice.Record) error { return errDown })
		g := NewGroup(m)
		f := Open(t.Context(), m, Options{Logger: quiet, Group: g})
		mustSubmit(t, f, recs("x", "x", "x")...)
		time.Sleep(time.Hour)
		if out := g.Outages(); len(out) != 0 {
			t.Errorf("outages %+v", out)
		}
		mustSubmit(t, f, rec("y", 4))
		time.Sleep(time.Hour)
		if out := g.Outages(); len(out) != 1 {
			t.Errorf("outages %+v", out)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if n, err := f.Close(ctx); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("Close = %d, %v", n, err)
		}
	})
}

// A probe that is skipped or fails for good says nothing about the route.
func TestNeutralProbesLeaveTheBreakerOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		m := routes(func(ctx context.Context, r *sluice.Record) error {
			switch {
			case up.Load():
				return nil
			case keyOf(r) == "skip":
				return sluice.Skip("nothing to send")
			case keyOf(r) == "permanent":
				return sluice.Permanent(errDown)
			}
			return errDown
		})
		g := NewGroup(m)
		d := &letters{}
		f := Open(t.Context(), m, Options{Logger: quiet, Group: g, DeadLetter: d})
		mustSubmit(t, f, recs("1", "2", "3", "4", "5", "6")...)
		time.Sleep(time.Minute)
		mustSubmit(t, f, rec("skip", 7), rec("permanent", 8))
		time.Sleep(10 * time.Minute)
		if len(g.Outages()) != 1 {
			t.Error("the breaker closed without a success")
		}
		d.want(t, "a 8 1")
		up.Store(true)
		mustClose(t, f, 8)
	})
}

// A probe that hangs must not keep the route closed for ever.
func TestAProbeThatHangsIsFollowedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		hang := make(chan struct{})
		m := routes(func(ctx context.Context, r *sluice.Record) error {
			if !up.Load() {
				return errDown
			}
			if keyOf(r) == "hangs" {
				<-hang
			}
			return nil
		})
		g := NewGroup(m)
		f := Open(t.Context(), m, Options{Logger: quiet, Group: g})
		mustSubmit(t, f, recs("hangs", "2", "3", "4", "5", "6")...)
		time.Sleep(time.Minute)
		if len(g.Outages()) != 1 {
			t.Fatal("no outage")
		}
		up.Store(true)
		time.Sleep(5 * time.Minute)
		if out := g.Outages(); len(out) != 0 {
			t.Errorf("outages %+v", out)
		}
		close(hang)
		mustClose(t, f, 6)
	})
}

// The other routes of a record whose route is out are not kept from it.
func TestOutageOfOneRouteLeavesTheOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		var up atomic.Bool
		fails := 2
		f := Open(t.Context(), routes(
			func(context.Context, *sluice.Record) error {
				if up.Load() {
					return nil
				}
				return errDown
			},
			func(_ context.Context, r *sluice.Record) error {
				if r.Sequence == "9" {
					if fails--; fails >= 0 {
						return errDown
					}
				}
				l.add("%s", r.Sequence)
				return nil
			},
		), Options{Logger: quiet})
		mustSubmit(t, f, recs("1", "2", "3", "4", "5", "6", "7", "8", "9")...)
		time.Sleep(time.Minute)
		if n := len(l.all()); n != 9 {
			t.Errorf("%d of 9 handled by the other route", n)
		}
		up.Store(true)
		mustClose(t, f, 9)
	})
}

// A call that began before the outage may be what ends it.
func TestAnySuccessClosesTheBreakerAndLetsAllGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var l log
		m := routes(func(ctx context.Context, r *sluice.Record) error {
			if keyOf(r) == "long" {
				time.Sleep(time.Hour)
			}
			if time.Since(start) < time.Hour {
				return errDown
			}
			l.add("%v", time.Since(start))
			return nil
		})
		f := Open(t.Context(), m, Options{Logger: quiet})
		mustSubmit(t, f, recs("long", "1", "2", "3", "4", "5", "6", "7")...)
		mustClose(t, f, 8)
		l.want(t, "1h0m0s", "1h0m0s", "1h0m0s", "1h0m0s", "1h0m0s", "1h0m0s", "1h0m0s", "1h0m0s")
	})
}

// Handlers that are cut off when one flow ends are no outage for the others.
func TestCancellationIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := routes(func(ctx context.Context, r *sluice.Record) error {
			<-ctx.Done()
			return ctx.Err()
		})
		g := NewGroup(m)
		ctx, cancel := context.WithCancel(t.Context())
		f := Open(ctx, m, Options{Logger: quiet, Group: g})
		mustSubmit(t, f, many("x", 50)...)
		synctest.Wait()
		cancel()
		if n, err := f.Close(t.Context()); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("Close = %d, %v", n, err)
		}
		if out := g.Outages(); len(out) != 0 {
			t.Errorf("outages %+v", out)
		}
	})
}

func TestProbePacing(t *testing.T) {
	const base, limit = 100 * time.Millisecond, 30 * time.Second
	now := time.Now()
	var b breaker
	b.open.Store(true)
	for i := range 20 {
		p := b.startProbe(now, time.Minute)
		if d := b.probeAt.Sub(now); d != time.Minute {
			t.Fatalf("another probe after %v while one runs", d)
		}
		b.endProbe(p-1, failed, now, base, limit) // an earlier one that comes back late
		if d := b.probeAt.Sub(now); d != time.Minute {
			t.Fatalf("another probe after %v", d)
		}
		b.endProbe(p, failed, now, base, limit)
		if d, want := b.probeAt.Sub(now), doubled(base, limit, i); d < want/2 || d > want {
			t.Errorf("probe %d: next after %v, want half to all of %v", i, d, want)
		}
	}
	b.endProbe(b.startProbe(now, time.Minute), neutral, now, base, limit)
	if b.probeAt != now {
		t.Errorf("after one that tells nothing the next one waits %v", b.probeAt.Sub(now))
	}
}
