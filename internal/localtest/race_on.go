//go:build race

package localtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// Elsewhere runs the whole test or subtest in a process of its own without the
// race detector, which would make it several times as slow, and then reports true.
// Without the race detector it reports false, and the test continues:
//
//	if localtest.Elsewhere(t) {
//		return
//	}
//
// Data shared between goroutines needs another test, with the race detector.
func Elsewhere(t *testing.T) bool {
	t.Helper()
	bin, err := withoutRace()
	if err != nil {
		t.Fatal(err)
	}
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
	out, err := exec.CommandContext(t.Context(), bin, "-test.run", pattern, "-test.v", "-test.timeout", "2h").CombinedOutput()
	t.Logf("%s", out)
	if err == nil && !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		err = errors.New("it did not run")
	}
	if err != nil {
		t.Errorf("without the race detector: %v", err)
	}
	return true
}

// withoutRace builds the tests of the package in the working folder, which is
// the one under test. The binary stays in the module's .out, so that go links
// it only when something has changed.
var withoutRace = sync.OnceValues(func() (string, error) {
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	name, err := filepath.Rel(root, dir)
	if err != nil {
		return "", err
	}
	bin := filepath.Join(root, ".out", "norace", strings.ReplaceAll(name, string(filepath.Separator), "-")+".test")
	if out, err := exec.Command("go", "test", "-race=false", "-c", "-tags", "integration", "-vet=off", "-ldflags=-s -w", "-o", bin, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
})
