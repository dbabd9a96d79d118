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

// Handlers wait until they are admitted. A wait is no failure; a flow that ends
// meanwhile makes no call, settles nothing and parks nothing.
func TestAdmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l, told log
		var open atomic.Bool
		ctx, lose := context.WithCancelCause(t.Context())
		f := Open(ctx, routes(func(_ context.Context, r *sluice.Record) error {
			l.add("%d", nth(r))
			return nil
		}), Options{Logger: quiet, DeadLetter: DeadLetter(nil), Hooks: told.hooks(), Admit: func(ctx context.Context) error {
			for !open.Load() {
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			return nil
		}})
		open.Store(true)
		mustSubmit(t, f, rec("a", 1))
		synctest.Wait()
		open.Store(false)
		mustSubmit(t, f, rec("a", 2), rec("b", 3))
		time.Sleep(time.Hour)
		if got := l.all(); len(got) != 1 || f.Settled() != 1 {
			t.Errorf("handled %q, %d settled, while nothing was admitted", got, f.Settled())
		}
		open.Store(true)
		time.Sleep(time.Minute)
		if got := l.all(); len(got) != 3 || f.Settled() != 3 {
			t.Errorf("handled %q, %d settled, want all", got, f.Settled())
		}
		open.Store(false)
		mustSubmit(t, f, rec("a", 4))
		synctest.Wait()
		lost := errors.New("lease lost")
		lose(lost)
		if n, err := f.Close(t.Context()); n != 3 || !errors.Is(err, lost) {
			t.Errorf("Close = %d, %v", n, err)
		}
		if got := l.all(); len(got) != 3 {
			t.Errorf("handled %q after the end", got)
		}
	})
}
