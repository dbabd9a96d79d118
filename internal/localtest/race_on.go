//go:build race

package localtest

import (
	"os/exec"
	"testing"
)

// Elsewhere runs the whole test in a process of its own without the race
// detector, which would make it cost several times as much, and reports that it
// has. Without the race detector it reports false, and the test goes on:
//
//	if localtest.Elsewhere(t) {
//		return
//	}
//
// What is shared between goroutines needs another test, with the race detector.
func Elsewhere(t *testing.T) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "test", "-race=false", "-tags", "integration", "-vet=off", "-timeout", "2h", "-count=1", "-v", "-run", "^"+t.Name()+"$", ".").CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("without the race detector: %v", err)
	}
	return true
}
