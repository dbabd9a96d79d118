package deadletter

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// getFails is a store whose first Get fails.
type getFails struct {
	state.Letters
	gets int
}

func (g *getFails) GetLetter(ctx context.Context, app, id string) ([]byte, bool, error) {
	if g.gets++; g.gets == 1 {
		return nil, false, errDisk
	}
	return g.Letters.GetLetter(ctx, app, id)
}

// What cannot be read when its turn comes ends a redrive: it may be of the item of
// what comes behind it.
func TestRedriveEndsAtWhatCannotBeReadAgain(t *testing.T) {
	b := NewBox(&getFails{Letters: state.NewMemory()}, "app")
	park(t, b, record("a", 10), "r")
	park(t, b, record("a", 20), "r")
	var c calls
	m := router.New()
	m.Handle("*#*", c.handle, router.Name("r"), router.Redrive())
	report, err := b.RedriveAll(t.Context(), m, Filter{}, How{Told: func(Outcome) {}})
	if !errors.Is(err, errDisk) || report != (Report{}) || c.got != nil {
		t.Errorf("%+v, %v; it ran %v", report, err, c.got)
	}
}

// A record whose item nobody knows, such as a message of a queue, waits for none.
func TestRedriveOfWhatHasNoItemWaitsForNone(t *testing.T) {
	letters := state.NewMemory()
	b := NewBox(letters, "app")
	damaged := idOf(record("a", 10), "r")
	if err := letters.PutLetter(t.Context(), "app", damaged, []byte(`{"version":9}`)); err != nil {
		t.Fatal(err)
	}
	s, err := b.scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	message := Entry{ID: damaged + "x", Route: "r", EventName: sluice.Delivery}
	if o := s.waits(parkedItems{}, &message); len(o.Earlier) > 0 {
		t.Errorf("it waits for %q", o.Earlier)
	}
}

// An outcome says which route it was once, and why it was refused.
func TestOutcomeSaysWhy(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	id := park(t, b, record("a", 10), "r")
	for _, tt := range []struct {
		options   []router.Option
		want, not string
	}{
		{[]router.Option{router.Name("r"), router.Redrive()}, "down", "route"},
		{[]router.Option{router.Name("r")}, "redriven", "does not take this record any more"},
		{[]router.Option{router.Name("other"), router.Redrive()}, `no route "r" any more`, "filters"},
	} {
		m := router.New()
		m.Handle("*#*", func(context.Context, *sluice.Record) error { return errors.New("down") }, tt.options...)
		var told []Outcome
		err := b.Redrive(t.Context(), m, id, How{Told: func(o Outcome) { told = append(told, o) }})
		if err == nil || len(told) != 1 || !strings.Contains(told[0].Error, tt.want) || strings.Contains(told[0].Error, tt.not) {
			t.Errorf("%v; told %+v, want %s", err, told, tt.want)
		}
		if tt.want == "down" && !slices.Equal(told[0].Routes, []string{"r"}) {
			t.Errorf("routes %q", told[0].Routes)
		}
	}
}
