//go:build integration && unix && proof

package fleettest

import "testing"

const (
	steps  = 200
	shards = 64
)

func TestProofChaos(t *testing.T) { TestChaos(t) }
