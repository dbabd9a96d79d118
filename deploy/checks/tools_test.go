//go:build integration

package checks

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// cache is where programs of Go are kept, apart from the sources.
const cache = ".cache/deploy"

// must runs a program in the repository's folder, and fails the test when the
// program does.
func must(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := try(t, program, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return out
}

func try(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var built = map[string]bool{} // by goTool, in this run; no test of the package is parallel

// goTool builds a program of tools/deploy's module. Go keeps what it links for go run:
// the next clone only copies it.
func goTool(t *testing.T, name, pkg string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, cache, "bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if built[name] {
		return path
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // of a test
		t.Fatal(err)
	}
	// The tags leave out service discovery for thirty clouds.
	if out, err := try(t, "go", "-C", "tools/deploy", "run", "-exec", "cp", "-tags", "remove_all_sd,netgo", pkg, path); err != nil {
		t.Fatalf("building %s, which takes a module proxy for the first time: %v\n%s", name, err, out)
	}
	built[name] = true
	return path
}

// installed is a folder of the user's cache that fill made once for these inputs: it
// needs a network then, and never again. All clones share it.
func installed(t *testing.T, name, inputs string, fill func(home string)) string {
	t.Helper()
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(user, "sluice", "deploy", fmt.Sprintf("%s-%.6x", name, sha256.Sum256([]byte(inputs))))
	if _, err := os.Stat(home); err == nil {
		return home
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil { //nolint:gosec // of a test
		t.Fatal(err)
	}
	part, err := os.MkdirTemp(filepath.Dir(home), "part-") //nolint:usetesting // a rename needs the same disk
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(part) //nolint:errcheck // it is gone, or of no use
	fill(part)
	if err := os.Rename(part, home); err != nil && !errors.Is(err, os.ErrExist) { // another clone was first
		t.Fatal(err)
	}
	return home
}

// pyTool is a program of PyPI, of the versions and hashes in
// tools/deploy/requirements.txt. Python compiles what it runs, a part of what pip would
// compile.
func pyTool(t *testing.T, name string) string {
	t.Helper()
	home := installed(t, "py", read(t, root, "tools/deploy/requirements.txt"), func(home string) {
		python, err := exec.LookPath("python3")
		if err != nil {
			t.Fatal("the checks of templates and chart need Python 3.10 or newer with venv: apt-get install python3-venv, or brew install python")
		}
		must(t, python, "-m", "venv", home)
		must(t, filepath.Join(home, "bin/pip"), "install", "--quiet", "--no-compile", "--disable-pip-version-check", "--require-hashes", "-r", "tools/deploy/requirements.txt")
	})
	return filepath.Join(home, "bin", name)
}

// py runs a script of PyPI. It names its Python by the path that its folder had before:
// python3 from there runs it, without variables (-E) that keep what it compiles from
// being written.
func py(t *testing.T, name string, args ...string) string {
	t.Helper()
	return must(t, pyTool(t, "python3"), append([]string{"-E", pyTool(t, name)}, args...)...)
}

func TestPromtool(t *testing.T) {
	promtool := goTool(t, "promtool", "github.com/prometheus/prometheus/cmd/promtool")
	must(t, promtool, "check", "rules", "--lint-fatal", "deploy/prometheus/alerts.yaml")
	must(t, promtool, "test", "rules", "deploy/prometheus/alerts_test.yaml")
	must(t, promtool, "check", "config", "--syntax-only", "deploy/compose/prometheus.yaml")
}

func TestCfnLint(t *testing.T) {
	// The CDK repeats dependencies: W3005.
	py(t, "cfn-lint", "--ignore-checks", "W3005", "--", "deploy/lambda/sam/template.yaml", "deploy/ecs/cloudformation.yaml", "deploy/ecs/fargate.yaml", cdkTemplate(t))
}

func TestHadolint(t *testing.T) {
	must(t, pyTool(t, "hadolint"), "deploy/docker/Dockerfile", "deploy/docker/Dockerfile.lambda")
}

func TestSystemdAnalyze(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("no systemd on this machine: TestSystemdUnit reads the unit by itself")
		return
	}
	// verify wants the program to be there.
	text := read(t, deploy, "systemd/sluice.service")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "sluice.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(text, "/usr/local/bin/sluice", program)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := must(t, analyze, "verify", "--man=no", unit); out != "" {
		t.Errorf("systemd-analyze verify: %s", out)
	}
}
