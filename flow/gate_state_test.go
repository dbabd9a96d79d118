package flow

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// outageOf has n records fail at their first call until the route is in an outage.
func outageOf(t *testing.T, g *gate, n int) {
	t.Helper()
	g.wait()
	for range 2 {
		for i := range n {
			c, _ := g.try(nil)
			g.ended(c, uint64(i), failed, errDown)
		}
		time.Sleep(outageAfter)
	}
	c, _ := g.try(nil)
	g.ended(c, 0, failed, errDown)
	if s := g.report().State; s != Outage {
		t.Fatalf("%v", s)
	}
}

// A route that is overloaded and fails for many items is told as the worse.
func TestAPartialOutageGoesBeforeAnOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(&sluice.Route{})
		g.wait()
		c, _ := g.try(nil)
		g.ended(c, 100, overloaded, errDown)
		if s := g.report(); s.State != Overloaded || s.Limit == 0 {
			t.Fatalf("%+v", s)
		}
		for i := range uint64(outageItems) {
			g.ended(nil, i, failed, errDown)
		}
		if s := g.report().State; s != Partial {
			t.Errorf("%v", s)
		}
	})
}

// Healthy time is that of all healthy states, and of no other.
func TestHealthyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(&sluice.Route{})
		time.Sleep(3 * time.Minute)
		outageOf(t, g, outageFailures)
		before := g.healthyTime(time.Now())
		time.Sleep(time.Hour)
		if got := g.healthyTime(time.Now()); got != before || got < 3*time.Minute || got > 3*time.Minute+2*outageAfter {
			t.Errorf("%v before an hour of an outage, %v after it", before, got)
		}
		for i := range uint64(outageFailures) {
			g.ended(nil, i, succeeded, nil)
		}
		g.done(0, false, false)
		time.Sleep(2 * time.Minute)
		if got := g.healthyTime(time.Now()); got != before+2*time.Minute {
			t.Errorf("%v, want two minutes more than %v", got, before)
		}
	})
}

// A probe that comes back after its outage says nothing of the next one's.
func TestAProbeOfAnOlderOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(&sluice.Route{})
		outageOf(t, g, rampFailures)
		time.Sleep(maxPause)
		old, ok := g.try(nil)
		if !ok {
			t.Fatal("no probe")
		}
		g.ended(nil, 0, succeeded, nil)
		outageOf(t, g, rampFailures)
		time.Sleep(maxPause)
		if _, ok := g.try(nil); !ok || g.outage.probes != 1 {
			t.Fatalf("%v, %d probes", ok, g.outage.probes)
		}
		g.unused(old)
		if g.outage.probes != 1 {
			t.Errorf("%d probes run, want 1", g.outage.probes)
		}
	})
}

// Beside a probe that may take its route's time-out none is sent before that.
func TestAProbeHasTheTimeOfItsRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 10 * time.Minute
		g := newGate(&sluice.Route{Timeout: timeout})
		outageOf(t, g, outageFailures)
		time.Sleep(maxPause)
		if _, ok := g.try(nil); !ok {
			t.Fatal("no probe")
		}
		time.Sleep(timeout - time.Second)
		if _, ok := g.try(nil); ok {
			t.Error("a second probe before the time-out of the first")
		}
		time.Sleep(2 * time.Second)
		if _, ok := g.try(nil); !ok {
			t.Error("no second probe, though the first may never come back")
		}
	})
}

// What succeeded before an item failed says nothing of it.
func TestSuccessesCountFromTheFirstFailure(t *testing.T) {
	g := newGate(&sluice.Route{})
	g.wait()
	good := func(n int) {
		for range n {
			g.ended(nil, 100, succeeded, nil)
		}
	}
	good(2 * poisonSuccesses)
	if h, _ := g.ended(nil, 1, failed, errDown); h.successes != 0 {
		t.Errorf("%d successes at the first failure", h.successes)
	}
	good(5)
	if h, _ := g.ended(nil, 1, failed, errDown); h.successes != 5 {
		t.Errorf("%d successes after it, want 5", h.successes)
	}
}

// Of two who tell of a state at once the second may come first: the last line of
// the log is what is so.
func TestTheLastLineOfTheLogIsSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := Open(t.Context(), routes(ok), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		g := f.group.gates[0]
		outageOf(t, g, outageFailures)
		f.announce(g)
		for i := range uint64(outageFailures) {
			g.forsake(i)
		}
		g.done(0, false, false)
		f.announce(g) // of the end
		f.announce(g) // of the outage, late
		if got := log.String(); strings.Count(got, "msg=") != 2 || strings.Index(got, "fails for every record") > strings.Index(got, "nothing waits") {
			t.Errorf("the log says\n%s", got)
		}
		mustClose(t, f, 0)
	})
}
