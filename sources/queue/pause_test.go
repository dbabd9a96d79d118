package queue

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
)

// A message of a paused route stays in hand, and is no failure. A stop gives it back at
// once; a resume handles it.
func TestPausedRoute(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "jobs")
		w.stub.send("jobs", body(1))
		var handled atomic.Int64
		m := routesOf(func(context.Context, *sluice.Record) error { handled.Add(1); return nil }, "job")
		g := flow.NewGroup(m)
		route := m.Routes()[0].Name
		g.Throttle(route, flow.Throttle{Paused: true})
		w.startRoutes(Options{Group: g, Grace: 10 * time.Minute}, m)
		pass(13 * time.Hour) // SQS hides it for 12
		if reasons := w.c.NotReady(); len(reasons) > 0 || handled.Load() > 0 {
			t.Errorf("%d handled; not ready: %v", handled.Load(), reasons)
		}
		if log := w.logged(); strings.Contains(log, "somebody else may have it") {
			t.Error(log)
		}
		if m := w.stub.find("jobs-001"); m.received > 3 { // at most twice as SQS hides it no more
			t.Errorf("received %d times", m.received)
		}
		begin := time.Now()
		w.end()
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("the end took %v", took)
		}
		// A last receive may still answer with it, and it goes back once more.
		if m := w.stub.find("jobs-001"); m.gone || m.visible.After(time.Now()) {
			t.Errorf("deleted %v, hidden for another %v", m.gone, time.Until(m.visible))
		}
		w.startRoutes(Options{Group: g}, m)
		pass(time.Hour)
		g.Throttle(route, flow.Throttle{})
		pass(time.Second)
		w.end()
		if w.expectLeft("jobs"); handled.Load() != 1 {
			t.Errorf("%d handled", handled.Load())
		}
	})
}

// A message that SQS no longer hides is not handled at the end of a pause: another
// consumer may have it. It comes again, before those behind it.
func TestMessageLapsesInAPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "jobs.fifo")
		w.stub.send("jobs.fifo", "a/"+body(1), "a/"+body(2))
		m := routesOf(func(_ context.Context, rec *sluice.Record) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.names = append(w.names, nOf(rec))
			return nil
		}, "job")
		g := flow.NewGroup(m)
		g.Throttle("job", flow.Throttle{Paused: true})
		w.startRoutes(Options{Group: g}, m)
		pass(time.Second)
		setFault := func(f func(call, queue string) *fault) {
			w.stub.mu.Lock()
			defer w.stub.mu.Unlock()
			w.stub.fault = f
		}
		setFault(func(string, string) *fault { return &fault{lost: true} })
		pass(10 * time.Minute)
		g.Throttle("job", flow.Throttle{})
		pass(time.Second)
		if calls := w.calls(); len(calls) > 0 {
			t.Errorf("handled though SQS shows them: %v", calls)
		}
		w.expectEnds(map[End]int{EndLost: 2})
		setFault(nil)
		pass(time.Minute)
		w.end()
		if w.expectLeft("jobs.fifo"); !slices.Equal(w.calls(), []string{"1", "2"}) {
			t.Errorf("handled %v", w.calls())
		}
	})
}

// A long visibility has no message of a paused route come again and again: a queue's
// redrive policy would take it.
func TestPausedRouteWithTheLongestVisibility(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "jobs")
		w.stub.send("jobs", body(1))
		m := routesOf(func(context.Context, *sluice.Record) error { return nil }, "job")
		g := flow.NewGroup(m)
		g.Throttle("job", flow.Throttle{Paused: true})
		w.startRoutes(Options{Group: g, Visibility: maxHold}, m)
		pass(11 * time.Hour)
		if m := w.stub.find("jobs-001"); m.received > 3 {
			t.Errorf("received %d times", m.received)
		}
		w.end()
	})
}
