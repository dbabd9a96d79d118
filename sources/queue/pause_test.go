package queue

import (
	"context"
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
		pass(11 * time.Hour)
		if reasons := w.c.NotReady(); len(reasons) > 0 || handled.Load() > 0 {
			t.Errorf("%d handled; not ready: %v", handled.Load(), reasons)
		}
		begin := time.Now()
		w.end()
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("the end took %v", took)
		}
		if m := w.stub.find("jobs-001"); m.gone || m.visible.After(time.Now()) || m.received != 1 {
			t.Errorf("deleted %v, hidden for another %v, received %d times", m.gone, time.Until(m.visible), m.received)
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
