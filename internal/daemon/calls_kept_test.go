package daemon

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/retrying"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// Errors of the AWS SDK keep the context of their call. A waiting record keeps its
// error for hours. Neither may keep later calls in memory.
func TestCallKeepsNoOther(t *testing.T) {
	rc := &routeCalls{}
	rec := streamtest.Insert("orders", map[string]any{"id": "a"})
	begin := func() *oneCall {
		c := &oneCall{route: rc, rec: &rec} // all in one list
		c.list().add(c)
		return c
	}
	kept := begin()
	other := weak.Make(begin())
	rc.end(kept, &rec, nil)
	rc.end(other.Value(), &rec, nil)
	runtime.GC()
	if other.Value() != nil {
		t.Error("a call that has returned keeps another one")
	}
	runtime.KeepAlive(kept)
}

// A sink's report after the handler has returned belongs to no record.
func TestRetryingAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := watchedFlow(t)
		q.calling(func(ctx context.Context, _ string) error {
			time.AfterFunc(time.Second, func() { retrying.From(ctx).Retrying(errors.New("late")) })
			return nil
		})
		q.put("a")
		after(10 * time.Second)
		q.ready("")
	})
}

// A hanging call does not hide the errors of other calls. Other calls do not hide the
// hanging one.
func TestOneCallHangsWhileOthersFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := watchedFlow(t)
		release := make(chan struct{})
		q.calling(func(_ context.Context, id string) error {
			if id == "hangs" {
				<-release
			}
			return errors.New("connection refused")
		})
		q.put("hangs")
		after(10 * time.Second)
		q.put("a", "b", "c", "d", "e", "f")
		after(time.Minute)
		q.ready("connection refused")
		if lanes := fmt.Sprint(q.calls.lanes(lanesOf(q.flow))); !strings.Contains(lanes, "no answer for 1m10s") {
			t.Errorf("lanes %s", lanes)
		}
		close(release)
	})
}

// A success says nothing of a sink that fails since its call began.
func TestSuccessOfACallThatBeganBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := watchedFlow(t)
		q.calling(func(_ context.Context, id string) error {
			if id == "before" {
				time.Sleep(2 * time.Second)
				return nil
			}
			return errors.New("refused")
		})
		q.put("before")
		after(time.Second)
		q.put("a")
		after(9 * time.Second)
		q.ready(`route "search" fails for 1 record`)
	})
}

// Routes belong to the application: a second daemon, a redrive or a test may run
// them at the same time.
func TestRoutesOfTheApplicationStay(t *testing.T) {
	m := router.New()
	m.Handle("*#*", func(ctx context.Context, _ *sluice.Record) error {
		if retrying.From(ctx) != nil {
			t.Error("a call that is not the daemon's is watched")
		}
		return errors.New("down")
	})
	c, watched := watchCalls(m)
	rec := streamtest.Insert("orders", map[string]any{"id": "a"})
	if err := m.Routes()[0].Handler(t.Context(), &rec); err == nil || c.routes[0].failing.Load() {
		t.Errorf("%v, noted: %v", err, c.routes[0].failing.Load())
	}
	routes, err := watched.Match(nil, &rec)
	if err != nil || len(routes) != 1 || routes[0] != watched.Routes()[0] || routes[0] == m.Routes()[0] {
		t.Errorf("matches %v, %v", routes, err)
	}
}

// The daemon reads a handler's errors as flow does.
func TestErrorsThatTellOfARoute(t *testing.T) {
	plain := errors.New("refused")
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{plain, true},
		{sluice.Overloaded(plain), true},
		{sluice.RetryAfter(0, plain), true},
		{sluice.RetryAfter(time.Second, plain), false},
		{&sluice.Remaining{Err: plain}, true},
		{&sluice.Remaining{After: time.Second, Err: plain}, false},
		{&sluice.Remaining{After: time.Second, Err: sluice.Overloaded(plain)}, true},
		{sluice.Permanent(plain), false},
		{sluice.Skip("none"), false},
	} {
		if got := tellsOfRoute(fmt.Errorf("handler: %w", tt.err)); got != tt.want {
			t.Errorf("%#v: %v", tt.err, got)
		}
	}
}
