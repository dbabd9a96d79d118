//go:build integration && proof

package poller

import "testing"

func TestProofKilledLosesNothing(t *testing.T) { killedLosesNothing(t, 500) }
