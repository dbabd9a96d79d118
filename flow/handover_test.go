package flow

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// keptLetters keeps what is parked.
type keptLetters struct{ all []sluice.Failure }

func (l *keptLetters) Park(_ context.Context, _ *sluice.Record, f sluice.Failure) error {
	l.all = append(l.all, f)
	return nil
}

// succeed hands f over to a flow of new routes.
func succeed(t *testing.T, f *Flow, old *Group, m *table, o Options) *Flow {
	t.Helper()
	old.HandOver()
	f.Leave()
	begun := time.Now()
	if _, err := f.Close(t.Context()); err == nil || !errors.Is(err, errHandedOver) {
		t.Errorf("Close: %v, want %v", err, errHandedOver)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("Close takes %v: it waits for failing records", took)
	}
	o.Group = NewGroup(m)
	o.Group.Inherit(old)
	return Open(t.Context(), m, o)
}

// Failures of a record count on under new routes.
func TestHandOverKeepsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := func(context.Context, *sluice.Record) error { return errDown }
		letters := &keptLetters{}
		was, m := routes(down), routes(down)
		old := NewGroup(was)
		o := Options{Group: old, DeadLetter: letters, MaxAge: time.Hour, Logger: quiet}
		f := Open(t.Context(), was, o)
		r := rec("a", 1)
		mustSubmit(t, f, r)
		begun := time.Now()
		time.Sleep(30 * time.Minute)
		before := f.Held()[0]
		f = succeed(t, f, old, m, o)
		mustSubmit(t, f, r)
		synctest.Wait()
		after := f.Held()[0]
		if after.Attempts != before.Attempts+1 || after.Age != before.Age || after.Route != before.Route {
			t.Errorf("held as %+v, before as %+v", after, before)
		}
		time.Sleep(time.Until(begun.Add(time.Hour + time.Second)))
		synctest.Wait()
		if len(letters.all) != 1 || letters.all[0].Attempts <= after.Attempts || !letters.all[0].FirstAt.Equal(begun) {
			t.Errorf("an hour after its first failure it is parked as %+v", letters.all)
		}
		mustClose(t, f, 1)
	})
}

// An outage lasts over a handover, and the log says nothing of it.
func TestHandOverInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var works atomic.Bool
		var calls atomic.Int64
		h := func(context.Context, *sluice.Record) error {
			if calls.Add(1); works.Load() {
				return nil
			}
			return errDown
		}
		m := routes(h)
		old := NewGroup(m)
		o := Options{Group: old, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		f := Open(t.Context(), m, o)
		all := recs("a", "b", "c", "d", "e", "f")
		mustSubmit(t, f, all...)
		time.Sleep(time.Minute)
		was := old.States()[0]
		if was.State != Outage {
			t.Fatalf("state %v", was.State)
		}
		next := routes(h, ok)
		log.Reset()
		f = succeed(t, f, old, next, o)
		calls.Store(0)
		mustSubmit(t, f, all...)
		synctest.Wait()
		if s := f.group.States()[0]; s.State != Outage || !s.Since.Equal(was.Since) || calls.Load() != 1 {
			t.Errorf("state %v since %v with %d calls, before %v since %v", s.State, s.Since, calls.Load(), was.State, was.Since)
		}
		if s := f.group.States()[1]; s.State != Works {
			t.Errorf("the new route: %v", s.State)
		}
		if strings.Contains(log.String(), "any more") {
			t.Errorf("the log:\n%s", log.String())
		}
		works.Store(true)
		time.Sleep(time.Minute)
		mustClose(t, f, 6)
		if s := f.group.States()[0]; s.State != Works {
			t.Errorf("state %v, after all is done", s.State)
		}
	})
}

// Records that have not failed are drained.
func TestHandOverDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := routes(func(_ context.Context, r *sluice.Record) error {
			time.Sleep(time.Second)
			if keyOf(r) == "bad" {
				return errDown
			}
			return nil
		})
		old := NewGroup(m)
		f := Open(t.Context(), m, Options{Group: old, Concurrency: 2, Logger: quiet})
		mustSubmit(t, f, recs("bad", "a", "b", "a", "c", "bad", "a", "d")...)
		old.HandOver()
		if settled, err := f.Close(t.Context()); settled != 0 || !errors.Is(err, errHandedOver) {
			t.Errorf("%d settled, %v", settled, err)
		}
		if unsettled, _ := f.Unsettled(10); len(unsettled) != 2 || unsettled[0] != 1 || unsettled[1] != 6 {
			t.Errorf("unsettled are %v, want those of the item that fails", unsettled)
		}
	})
}

// A pause lasts over a handover, and a limit of the new route counts.
func TestHandOverOfAThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		h := func(context.Context, *sluice.Record) error { calls++; return nil }
		old := NewGroup(routes(h))
		old.Throttle(old.gates[0].route.Name, Throttle{Paused: true})
		m := routes(h)
		g := NewGroup(m)
		g.Inherit(old)
		f := Open(t.Context(), m, Options{Group: g})
		mustSubmit(t, f, rec("a", 1))
		time.Sleep(time.Hour)
		if calls > 0 || !g.States()[0].Throttle.Paused {
			t.Errorf("%d calls in a pause", calls)
		}
		g.Throttle(m.routes[0].Name, Throttle{})
		mustClose(t, f, 1)
	})
}
