//go:build integration && proof

package losstest

import "testing"

const items = 10_000

func TestProofNothingIsLost(t *testing.T) { TestNothingIsLost(t) }
