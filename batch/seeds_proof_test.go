//go:build proof

package batch

import "testing"

func TestProofSeedsNeverLoseASignal(t *testing.T) { neverLoseASignal(t, 20_000) }
