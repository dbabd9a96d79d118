//go:build integration && !race

package main

import "testing"

// elsewhere reports whether the test was run in another process.
func elsewhere(*testing.T) bool { return false }
