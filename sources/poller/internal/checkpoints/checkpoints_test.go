package checkpoints

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/state"
)

// writing is a store that calls during while it stores positions.
type writing struct {
	during func()
	wrote  []string
}

func (w *writing) Checkpoint(_ context.Context, cs []state.Checkpoint) []error {
	for _, c := range cs {
		w.wrote = append(w.wrote, c.Position.Sequence)
	}
	w.during()
	return nil
}

// A position that moves while an earlier one is being stored is stored by the
// next round, and not taken for stored.
func TestPositionMovesDuringTheWrite(t *testing.T) {
	now := string(recordtest.Sequence(1))
	store := &writing{during: func() { now = string(recordtest.Sequence(2)) }}
	c := New(Config{Store: store, Every: time.Second, Done: func(int, time.Duration, error) {}})
	c.Hold(&Holding{Observe: func() {}, Lost: func() {}, Position: func() state.Position { return state.Position{Sequence: now} }})
	for range 3 {
		c.Round(t.Context())
	}
	want := string(recordtest.Sequence(1) + " " + recordtest.Sequence(2))
	if got := strings.Join(store.wrote, " "); got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
}
