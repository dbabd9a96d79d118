//go:build integration && proof

package meadowlark

import "testing"

func TestProofThousandRaces(t *testing.T) { races(t, 1000) }
