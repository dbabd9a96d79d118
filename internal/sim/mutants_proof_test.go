//go:build integration && proof

package sim

import "testing"

func TestProofMutants(t *testing.T) { areCaughtBy(t, mutant.caught, mutants) }

func TestProofFleetMutants(t *testing.T) { areCaughtBy(t, mutant.caughtByFleet, fleetMutants) }

func TestProofTestedMutants(t *testing.T) { areCaughtBy(t, mutant.caughtByTest, testedMutants) }
