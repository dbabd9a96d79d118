//go:build !race

package localtest

import "testing"

// Elsewhere reports that the test is to go on here: there is no race detector
// that would make it cost several times as much.
func Elsewhere(*testing.T) bool { return false }
