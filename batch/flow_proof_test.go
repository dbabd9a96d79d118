//go:build proof

package batch_test

import "testing"

func TestProofSeedsWithFlows(t *testing.T) { seedsWithFlows(t, 3000) }
