package deadletter

import (
	"context"
	"errors"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// A redrive or purge that cannot have the claim changes nothing; one that loses it ends
// before the next entry. A dry run needs none.
func TestExclusive(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	one := park(t, b, record("a", 10), "r")
	park(t, b, record("b", 20), "r")
	errHeld, errLost := errors.New("held"), errors.New("lost")
	var refused error
	var lose context.CancelCauseFunc
	claims, held := 0, 0
	b.Exclusive(func(ctx context.Context) (context.Context, func(), error) {
		if claims++; refused != nil {
			return nil, nil, refused
		}
		held++
		ctx, lose = context.WithCancelCause(ctx)
		return ctx, func() { held-- }, nil
	})
	ran := 0
	m := router.New()
	m.Handle("*#*", func(context.Context, *sluice.Record) error {
		if ran++; held != 1 {
			t.Errorf("%d claims are held", held)
		}
		return nil
	}, router.Name("r"), router.Redrive())

	refused = errHeld
	_, all := b.RedriveAll(t.Context(), m, Filter{}, How{})
	_, purge := b.Purge(t.Context(), Filter{}, false)
	for _, err := range []error{all, purge, b.Redrive(t.Context(), m, one, How{})} {
		if !errors.Is(err, errHeld) {
			t.Errorf("%v, want what the claim said", err)
		}
	}
	report, err := b.RedriveAll(t.Context(), m, Filter{}, How{DryRun: true})
	if n, purge := b.Purge(t.Context(), Filter{}, true); err != nil || purge != nil || report.WouldRun != 2 || n != 2 || claims != 3 {
		t.Errorf("dry runs: %+v, %v; %d, %v; %d claims", report, err, n, purge, claims)
	}
	if ran != 0 || len(list(t, b)) != 2 {
		t.Fatalf("%d ran, and %v are left", ran, list(t, b))
	}
	refused = nil
	told := How{Told: func(Outcome) { lose(errLost) }}
	if report, err := b.RedriveAll(t.Context(), m, Filter{}, told); !errors.Is(err, errLost) || report.Done != 1 {
		t.Errorf("after the claim is lost: %+v, %v", report, err)
	}
	if report, err := b.RedriveAll(t.Context(), m, Filter{}, How{}); err != nil || report.Done != 1 || held != 0 || ran != 2 {
		t.Errorf("after all: %+v, %v; %d claims are held", report, err, held)
	}
}
