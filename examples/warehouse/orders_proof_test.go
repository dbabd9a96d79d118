//go:build integration && proof

package warehouse

import "testing"

func TestProofEveryOrderOfEvents(t *testing.T) { everyOrder(t, 1) }
