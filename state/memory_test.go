package state_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/statetest"
)

func TestMemory(t *testing.T) {
	statetest.RunDurable(t, func(*testing.T) func() state.Store {
		m := state.NewMemory()
		return func() state.Store { return m }
	})
}

func TestMemoryOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { statetest.Owners(t, state.NewMemory(), staterules.OwnerTimeout, time.Sleep) })
}

func TestPositionString(t *testing.T) {
	for want, p := range map[string]state.Position{
		"the beginning":                    {},
		"100000000003498069978":            {Sequence: "100000000003498069978"},
		"100000000003498069978 (finished)": {Sequence: "100000000003498069978", Finished: true},
		"(finished)":                       {Finished: true},
	} {
		if got := p.String(); got != want {
			t.Errorf("%#v: %q, want %q", p, got, want)
		}
	}
}
