package deadletter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/state"
)

// deaf are letters that take an hour to delete one, and heed no context.
type deaf struct{ state.Letters }

func (d deaf) DeleteLetter(ctx context.Context, app, id string) error {
	time.Sleep(time.Hour)
	return d.Letters.DeleteLetter(ctx, app, id)
}

// Whoever waits for a store that does not answer heeds its own context: a flow
// can give up parking, and stop.
func TestWaitingHeedsTheContext(t *testing.T) {
	for name, call := range map[string]func(context.Context, *Box) error{
		"park": func(ctx context.Context, b *Box) error {
			return b.Park(ctx, record("b", 20), failure("r"))
		},
		"delete": func(ctx context.Context, b *Box) error { return b.Delete(ctx, "other") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := NewBox(deaf{state.NewMemory()}, "app")
				id := park(t, b, record("a", 10), "r")
				go func() {
					if err := b.Delete(t.Context(), id); err != nil {
						t.Error(err)
					}
				}()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				if err := call(ctx, b); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				if d := time.Since(start); d != time.Second {
					t.Errorf("it took %v", d)
				}
				time.Sleep(time.Hour)
				if got := list(t, b); len(got) != 0 {
					t.Errorf("left are %v", got)
				}
				park(t, b, record("b", 20), "r")
			})
		})
	}
}

// deafLists take an hour to list letters, and heed no context.
type deafLists struct{ state.Letters }

func (d deafLists) ListLetters(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	time.Sleep(time.Hour)
	return d.Letters.ListLetters(ctx, app, after, limit)
}

// While one reads from such a store what is held, others who want to know, or
// park, heed their contexts.
func TestWaitingForWhatIsHeldHeedsTheContext(t *testing.T) {
	for name, call := range map[string]func(context.Context, *Box) error{
		"holds": func(ctx context.Context, b *Box) error {
			_, err := b.Holds(ctx, record("b", 20), "r")
			return err
		},
		"load": func(ctx context.Context, b *Box) error { return b.Load(ctx) },
		"park": func(ctx context.Context, b *Box) error {
			return b.Park(ctx, record("b", 20), failure("r"))
		},
		"park a gap": func(ctx context.Context, b *Box) error { return b.ParkGap(ctx, gap("s", 5)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := NewBox(deafLists{state.NewMemory()}, "app")
				loaded := make(chan error, 1)
				go func() { loaded <- b.Load(t.Context()) }()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				if err := call(ctx, b); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				if d := time.Since(start); d != time.Second {
					t.Errorf("it took %v", d)
				}
				if err := <-loaded; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
