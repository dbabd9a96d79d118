//go:build proof

package queue

import "testing"

func TestProofSim(t *testing.T) { simulate(t, 500) }
