package state_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/statetest"
)

func TestMemory(t *testing.T) {
	statetest.RunDurable(t, func(*testing.T) func() state.Store {
		m := state.NewMemory()
		return func() state.Store { return m }
	})
}

func TestSilentOwnerLosesShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := state.NewMemory()
		st := state.Stream{Application: "app", ARN: "arn"}
		mine, err := m.Claim(t.Context(), st, "shard", "", "me")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			time.Sleep(state.OwnerTimeout - 1)
			if _, err := m.Claim(t.Context(), st, "shard", "", "you"); !errors.Is(err, state.ErrHeld) {
				t.Fatalf("Claim while the owner lives: %v, want ErrHeld", err)
			}
			if err := m.Heartbeat(t.Context(), "me"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(state.OwnerTimeout)
		yours, err := m.Claim(t.Context(), st, "shard", "", "you")
		if err != nil || yours.Epoch <= mine.Epoch {
			t.Fatalf("Claim of a silent owner's shard: %+v, %v", yours, err)
		}
	})
}

func TestPositionString(t *testing.T) {
	for want, p := range map[string]state.Position{
		"the beginning": {},
		"12":            {Sequence: "12"},
		"12 (finished)": {Sequence: "12", Finished: true},
		"(finished)":    {Finished: true},
	} {
		if got := p.String(); got != want {
			t.Errorf("%#v: %q, want %q", p, got, want)
		}
	}
}
