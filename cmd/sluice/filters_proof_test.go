//go:build proof

package main

import "testing"

func TestProofFiltersDropNothing(t *testing.T) { filtersDropNothing(t, 10_000) }
