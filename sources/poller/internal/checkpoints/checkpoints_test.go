package checkpoints

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
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

// refusing is a store where another owner has every shard.
type refusing struct{ during func() }

func (r *refusing) Checkpoint(_ context.Context, cs []state.Checkpoint) []error {
	r.during()
	errs := make([]error, len(cs))
	for i := range errs {
		errs[i] = state.ErrLeaseLost
	}
	return errs
}

// A Flush that waits when its lease is lost ends.
func TestFlushOfALostLease(t *testing.T) {
	lease := state.Lease{Stream: state.Stream{Application: "app", ARN: "arn"}, ShardID: "s", Owner: "me", Epoch: 1}
	for name, lose := range map[string]func(*Checkpointer){
		"fenced":       func(c *Checkpointer) { c.Lose("me") },
		"listed":       func(c *Checkpointer) { c.Check(lease.Stream, []state.Shard{{ID: "s", Epoch: 2}}) },
		"by the write": func(c *Checkpointer) { c.Round(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &refusing{during: func() {}}
				c := New(Config{Store: store, Every: time.Second, Done: func(int, time.Duration, error) {}})
				lost := 0
				h := &Holding{Lease: lease, Observe: func() {}, Lost: func() { lost++ }, Position: func() state.Position {
					return state.Position{Sequence: string(recordtest.Sequence(1))}
				}}
				c.Hold(h)
				flushed := make(chan error, 1)
				flush := func() {
					go func() { flushed <- c.Flush(t.Context(), h) }()
					synctest.Wait()
				}
				if name == "by the write" {
					store.during = flush // after the positions were taken
				} else {
					flush()
				}
				lose(c)
				if err := <-flushed; !errors.Is(err, state.ErrLeaseLost) || lost != 1 {
					t.Errorf("Flush: %v; Lost was called %d times", err, lost)
				}
			})
		})
	}
}
