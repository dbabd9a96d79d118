//go:build integration && proof

package sim

import "testing"

func TestProofMutants(t *testing.T) { areCaught(t, mutants) }
