//go:build race

package poller

import (
	"os/exec"
	"testing"
)

// crowded runs a test of hundreds of shards in a bubble, in a process of its own
// and without the race detector: its runtime has slots for 256 goroutines, and
// now and then fails a check of its own ("ThreadSanitizer: CHECK failed:
// tsan_rtl.cpp:346") when more of them take turns.
func crowded(t *testing.T, _ func(t *testing.T)) {
	t.Helper()
	out, err := exec.Command("go", "test", "-race=false", "-vet=off", "-count=1", "-v", "-run", "^"+t.Name()+"$", ".").CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("without the race detector: %v", err)
	}
}
