package flow

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// admits reports whether a call may join load others.
func (l *limiter) admits(load int, now time.Time) bool {
	return l.limit == 0 || load < int(l.limit) && !now.Before(l.pauseUntil)
}

// rounds runs rounds of as many calls as a limiter lets run at a time, at most
// most of them, and tells it how each ends. It returns the largest and the
// smallest round of the second half.
func rounds(l *limiter, n, most int, ends func(i, running int) kind) (low, high int) {
	now := time.Unix(0, 0)
	low = most
	for round := range n {
		now = now.Add(10 * time.Millisecond)
		running := 0
		for running < most && l.admits(running, now) {
			running++
		}
		if round >= n/2 && running > 0 {
			low, high = min(low, running), max(high, running)
		}
		began := l.cuts
		for i := range running {
			switch ends(i, running) {
			case succeeded:
				l.succeeded(began, running-i, running < most, now)
			case overloaded:
				l.refused(began, running, time.Millisecond, now)
			case failed:
				l.failed(began, running-i, now)
			}
		}
	}
	return low, high
}

func TestLimiterFindsTheCapacity(t *testing.T) {
	for _, capacity := range []int{1, 2, 4, 16, 50} {
		for name, refusal := range map[string]kind{"marked": overloaded, "plain": failed} {
			if refusal == failed && capacity < trialPeak {
				continue // no trial with so few calls
			}
			var l limiter
			low, high := rounds(&l, 4000, 64, func(i, running int) kind {
				if i >= capacity {
					return refusal
				}
				return succeeded
			})
			if low < capacity/2 || high > 2*capacity+2 {
				t.Errorf("%s, capacity %d: %d to %d calls at a time", name, capacity, low, high)
			}
		}
	}
}

// A part of the items fails whatever the load: fewer calls at a time do not help.
func TestLimiterTakesATrialBack(t *testing.T) {
	var l limiter
	_, high := rounds(&l, 1000, 64, func(i, _ int) kind {
		if i%2 == 0 {
			return failed
		}
		return succeeded
	})
	if high != 64 || l.limit != 0 {
		t.Errorf("%d calls at a time, limit %v", high, l.limit)
	}
	if l.trial.notYet.IsZero() {
		t.Error("there was no trial")
	}
}

func TestLimiterStartsFromOneAfterAnOutage(t *testing.T) {
	var l limiter
	l.restart(1)
	var sizes []int
	rounds(&l, 6, 64, func(i, running int) kind {
		if i == 0 {
			sizes = append(sizes, running)
		}
		return succeeded
	})
	for i, n := range sizes {
		if n != 1<<i && n != 64 {
			t.Fatalf("rounds of %v calls, want them doubled", sizes)
		}
	}
}

// A sink that takes few calls a second refuses even single ones: they pause.
func TestLimiterPauses(t *testing.T) {
	var l limiter
	now := time.Unix(0, 0)
	l.restart(1)
	for range 20 {
		l.refused(l.cuts, 1, time.Second, now)
	}
	if l.limit != 1 {
		t.Errorf("limit %v", l.limit)
	}
	open := 0
	for range 1000 {
		l.refused(l.cuts, 1, time.Second, now)
		if l.admits(0, now.Add(maxPause/2)) {
			open++
		}
		if !l.admits(0, now.Add(maxPause+1)) {
			t.Fatal("pauses for too long")
		}
	}
	if open < 300 || open > 700 {
		t.Errorf("%d of 1000 pauses are shorter than half of the longest", open)
	}
	l.succeeded(l.cuts, 1, true, now)
	if l.refusals != 0 {
		t.Error("a success does not end it")
	}
}

func TestALimitThatBindsNobodyIsForgotten(t *testing.T) {
	var l limiter
	now := time.Unix(0, 0)
	l.refused(l.cuts, 10, time.Second, now)
	for _, c := range []struct {
		load   int
		wanted bool
		after  time.Duration
		want   bool // it is kept
	}{
		{1, false, forgetAfter, true},
		{7, false, 2 * forgetAfter, true},
		{1, true, 2 * forgetAfter, true},
		{1, false, 2 * forgetAfter, false},
	} {
		l.succeeded(l.cuts, c.load, c.wanted, now.Add(c.after))
		if kept := l.limit > 0; kept != c.want {
			t.Errorf("%+v: limit %v", c, l.limit)
		}
	}
}

// A call that began before the limit was cut says nothing about it.
func TestOneCutARound(t *testing.T) {
	var l limiter
	now := time.Unix(0, 0)
	began := l.cuts
	for i := range 64 {
		l.refused(began, 64-i, time.Second, now)
	}
	if l.cuts != began+1 || int(l.limit) != 44 {
		t.Errorf("%d cuts, to %v", l.cuts-began, l.limit)
	}
}

// A burst of failures begins a trial, and then few calls come: too few to end it.
// The limit that was tried must not last.
func TestATrialEndsByItself(t *testing.T) {
	begun := func(t *testing.T) *gate {
		g := newGate(&sluice.Route{})
		g.wait()
		for range 2 { // whole rounds
			var calls []*call
			for range trialCalls {
				c, _ := g.try(nil)
				calls = append(calls, c)
			}
			for i, c := range calls {
				g.ended(c, uint64(i), failed, errDown)
			}
		}
		if !g.limiter.trial.on || g.limiter.limit == 0 {
			t.Fatalf("no trial: %+v", g.limiter)
		}
		return g
	}
	t.Run("after a while", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := begun(t)
			time.Sleep(trialAtMost)
			if n := g.report().Limit; n == 0 {
				t.Error("it ends too soon")
			}
			time.Sleep(time.Second)
			if s := g.report(); s.Limit != 0 {
				t.Errorf("%+v", s)
			}
		})
	})
	t.Run("when nothing waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := begun(t)
			for i := range uint64(trialCalls) {
				g.forsake(i)
			}
			g.done(0, false, false)
			if s := g.report(); s.State != Works || s.Limit != 0 {
				t.Errorf("%+v", s)
			}
		})
	})
}
