package deadletter

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// A record that fails again while its old entry is run or deleted is parked under
// the same id: it must stay, and hold its item.

func TestParkedAgainWhileRedriven(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	rec := record("a", 10)
	park(t, b, rec, "r")
	m := router.New()
	m.Handle("*#*", func(context.Context, *sluice.Record) error {
		f := failure("r")
		f.Last = errors.New("failed anew")
		return b.Park(t.Context(), rec, f)
	}, router.Name("r"), router.Redrive())
	id := idOf(rec, "r")
	var told Outcome
	err := b.Redrive(t.Context(), m, id, How{Told: func(o Outcome) { told = o }})
	if err == nil || told.Result != Failed || !strings.Contains(told.Error, "meanwhile") {
		t.Errorf("%v, %+v", err, told)
	}
	if e, err := b.Get(t.Context(), id); err != nil || e.Last.Error != "failed anew" {
		t.Errorf("the new failure: %+v, %v", e.Last, err)
	}
	if held, err := b.Holds(t.Context(), record("a", 20), "r"); !held || err != nil {
		t.Errorf("it holds its item: %v, %v", held, err)
	}
}

// parksBefore parks something else before its first delete.
type parksBefore struct {
	state.Letters
	park func()
}

func (p *parksBefore) ListLetters(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	all, err := p.Letters.ListLetters(ctx, app, after, limit)
	if park := p.park; park != nil {
		p.park = nil
		park()
	}
	return all, err
}

func TestParkedAgainWhilePurged(t *testing.T) {
	letters := &parksBefore{Letters: state.NewMemory()}
	b := NewBox(letters, "app")
	rec := record("a", 10)
	f := failure("r")
	f.First, f.Last = errors.New("the old cause"), errors.New("the old cause")
	if err := b.Park(t.Context(), rec, f); err != nil {
		t.Fatal(err)
	}
	park(t, b, record("b", 11), "r")
	letters.park = func() { park(t, b, rec, "r") }
	n, err := b.Purge(t.Context(), Filter{Error: "the old cause"}, false)
	if n != 0 || err != nil {
		t.Errorf("%d deleted, %v", n, err)
	}
	if got := list(t, b); len(got) != 2 {
		t.Errorf("left are %v", got)
	}
}

// Whatever happens at once, what is stored is what holds.
func TestHeldIsWhatIsStored(t *testing.T) {
	for i := range 300 {
		b := NewBox(&slow{Letters: state.NewMemory()}, "app")
		rec := record("a", 10)
		id := park(t, b, rec, "r")
		if _, err := b.Holds(t.Context(), rec, "r"); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- b.Park(t.Context(), rec, failure("r")) }()
		go func() { done <- b.Delete(t.Context(), id) }()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Fatal(err)
		}
		held, err := b.Holds(t.Context(), record("a", 20), "r")
		_, gone := b.Get(t.Context(), id)
		if err != nil || held == errors.Is(gone, ErrNotFound) {
			t.Fatalf("%d: held %v, stored: %v, %v", i, held, fmt.Sprint(gone), err)
		}
	}
}

// slow answers after others had their turn.
type slow struct{ state.Letters }

func (s *slow) PutLetter(ctx context.Context, app, id string, data []byte) error {
	defer runtime.Gosched()
	return s.Letters.PutLetter(ctx, app, id, data)
}

func (s *slow) DeleteLetter(ctx context.Context, app, id string) error {
	defer runtime.Gosched()
	return s.Letters.DeleteLetter(ctx, app, id)
}
