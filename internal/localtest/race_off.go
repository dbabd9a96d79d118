//go:build !race

package localtest

import "testing"

// Elsewhere reports false: there is no race detector that would slow the test
// down.
func Elsewhere(*testing.T) bool { return false }
