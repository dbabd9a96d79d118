//go:build integration && proof

package warehouse

import (
	"testing"

	"github.com/sluicehq/sluice/internal/localtest"
)

func TestProofEveryOrderOfEvents(t *testing.T) {
	localtest.OwnDynamoDB(t)
	everyOrder(t, 1)
}

func TestProofEveryOrderInMemory(t *testing.T) {
	eventsInAnyOrder(t, 1)
	headsInAnyOrder(t, 1)
	buildHeads(t, 1000)
}
