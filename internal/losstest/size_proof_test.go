//go:build integration && proof

package losstest

import "testing"

const items = 10_000

// kills is when the server is killed, by the number of writes.
var kills = []int{changes / 4, changes * 3 / 4}

func TestProofNothingIsLost(t *testing.T) { TestNothingIsLost(t) }
