//go:build integration && proof && unix

package releasetest

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

var released = flag.String("released", "", "folder of a release, whose program is the old version; default: this tree, built in the same way")

const (
	oldVersion, nextVersion = "v0.1.0", "v0.1.1"
	addedName               = "added" // the field that only the next version knows
)

// patches make the next version of this tree: each format that is stored has one more
// field. Each text is in its file once.
var patches = []struct{ file, before, after string }{
	{"state/boltstate/positions.go", "type storedShard struct {\n", "type storedShard struct {\nAdded string `json:\"added,omitempty\"`\n"},
	{"state/boltstate/positions.go", "json.Marshal(storedShard{\n", "json.Marshal(storedShard{\nAdded: \"v0.1.1\",\n"},
	{"state/dynamostate/store.go", "m[formatName] = ", "m[\"added\"] = &types.AttributeValueMemberS{Value: \"v0.1.1\"}\nm[formatName] = "},
	{"deadletter/entry.go", "type stored struct {\n", "type stored struct {\nAdded string `json:\"added,omitempty\"`\n"},
	{"deadletter/entry.go", "s := &stored{\n", "s := &stored{\nAdded: \"v0.1.1\",\n"},
	{"internal/pauses/pauses.go", "type Pause struct {\n", "type Pause struct {\nAdded string `json:\"added,omitempty\"`\n"},
	{"internal/pauses/pauses.go", "return Pause{ID:", "return Pause{Added: \"v0.1.1\", ID:"},
}

// programs takes the old version from a release, or builds it in dir, and builds the next
// one there.
func programs(t *testing.T, dir string) (old, next string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	next = build(t, root, dir, nextVersion, "-overlay", overlay(t, root, dir))
	if *released == "" {
		return build(t, root, dir, oldVersion), next
	}
	archives, err := filepath.Glob(filepath.Join(*released, "sluice_*_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("archives %v, %v: run make release", archives, err)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", archives[0], "-C", dir, "--strip-components=1").CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	return filepath.Join(dir, "sluice"), next
}

// build builds a version as tools/release does.
func build(t *testing.T, root, dir, version string, more ...string) (program string) {
	t.Helper()
	program = filepath.Join(dir, version)
	args := append([]string{"build", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w -X github.com/sluicehq/sluice/internal/buildversion.release=" + version, "-o", program}, more...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./cmd/sluice")...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", version, err, out)
	}
	return program
}

// overlay patches copies of the files, and returns what go build reads in their place.
func overlay(t *testing.T, root, dir string) (file string) {
	t.Helper()
	copies := make(map[string]string)
	for i, p := range patches {
		path := filepath.Join(root, p.file)
		data, err := os.ReadFile(cmp.Or(copies[path], path))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(data), p.before); n != 1 {
			t.Fatalf("%s has %q %d times: correct the patch", p.file, p.before, n)
		}
		copies[path] = filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(copies[path], []byte(strings.Replace(string(data), p.before, p.after, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": copies})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
