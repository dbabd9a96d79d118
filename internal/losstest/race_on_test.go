//go:build integration && race

package losstest

import (
	"os/exec"
	"testing"
)

// elsewhere runs the test in a process without the race detector, which would
// make it take several times as long, and reports that it has.
func elsewhere(t *testing.T) bool {
	t.Helper()
	out, err := exec.Command("go", "test", "-race=false", "-tags", "integration", "-vet=off", "-count=1", "-v", "-run", "^"+t.Name()+"$", ".").CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("without the race detector: %v", err)
	}
	return true
}
