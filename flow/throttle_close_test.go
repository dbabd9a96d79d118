package flow

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// A resume starts nothing once Close need not wait any more.
func TestResumeBehindClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called atomic.Int64
		m := routes(func(context.Context, *sluice.Record) error { called.Add(1); return nil })
		g := NewGroup(m)
		g.Throttle("a", Throttle{Paused: true})
		f := Open(t.Context(), m, Options{Logger: quiet, Group: g})
		mustSubmit(t, f, rec("x", 1))
		synctest.Wait()
		f.Leave()
		f.mu.Lock() // as Close does
		f.noMore, f.quiet = true, make(chan struct{})
		f.checkQuiet()
		f.mu.Unlock()
		g.Throttle("a", Throttle{})
		synctest.Wait()
		if called.Load() != 0 {
			t.Error("a record is called")
		}
		if n, err := f.Close(context.Background()); n != 0 || !errors.Is(err, errPaused) {
			t.Errorf("Close = %d, %v", n, err)
		}
	})
}

// Leave ends a Close whose records wait for a paused route; the records that have
// other work are handled.
func TestLeaveAPausedRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called atomic.Int64
		tries := 0
		m := onTwo(func(context.Context, *sluice.Record) error { called.Add(1); return nil }, func(context.Context, *sluice.Record) error {
			if tries++; tries < 8 {
				return errDown
			}
			return nil
		})
		g := NewGroup(m)
		g.Throttle("a", Throttle{Paused: true})
		f := Open(t.Context(), m, Options{Logger: quiet, Group: g})
		mustSubmit(t, f, rec("b", 1), rec("a", 2), rec("a", 3), rec("b2", 4))
		time.AfterFunc(time.Hour, f.Leave)
		begin := time.Now()
		n, err := f.Close(context.Background())
		if took := time.Since(begin); n != 1 || !errors.Is(err, errPaused) || took != time.Hour {
			t.Errorf("Close = %d, %v after %v", n, err, took)
		}
		if called.Load() != 0 {
			t.Error("a record of the paused route is called")
		}
	})
}

// A pause that begins during a Close ends it, too.
func TestPauseBehindLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := routes(func(context.Context, *sluice.Record) error { return errDown })
		g := NewGroup(m)
		f := Open(t.Context(), m, Options{Logger: quiet, Group: g})
		mustSubmit(t, f, rec("x", 1))
		f.Leave()
		time.AfterFunc(time.Hour, func() { g.Throttle("a", Throttle{Paused: true}) })
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		n, err := f.Close(ctx)
		if took := time.Since(begin); n != 0 || !errors.Is(err, errPaused) || took > time.Hour+time.Minute {
			t.Errorf("Close = %d, %v after %v", n, err, took)
		}
	})
}

// After Leave Close names a record that failed for good.
func TestLeaveAFailedRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error { return sluice.Permanent(errDown) }), Options{Logger: quiet})
		mustSubmit(t, f, rec("x", 1))
		f.Leave()
		if n, err := f.Close(t.Context()); n != 0 || !errors.Is(err, errDown) {
			t.Errorf("Close = %d, %v", n, err)
		}
	})
}
