//go:build integration && proof

package transitgateway

import "testing"

func TestProofThousandfoldRace(t *testing.T) { races(t, 1000) }
