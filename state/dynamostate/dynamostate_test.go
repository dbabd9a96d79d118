package dynamostate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/statetest"
)

func TestConformance(t *testing.T) {
	statetest.RunDurable(t, func(*testing.T) func() state.Store {
		table := new(memory)
		return func() state.Store { return over(table) }
	})
}

func TestOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		statetest.Owners(t, over(new(memory)), silentAfter, time.Sleep)
	})
}
