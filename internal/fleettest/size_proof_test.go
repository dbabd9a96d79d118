//go:build integration && unix && proof

package fleettest

import "testing"

const steps = 200

func TestProofChaos(t *testing.T) { TestChaos(t) }
