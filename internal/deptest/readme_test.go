package deptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// Every Go block of these files that has a package is a whole program that builds
// as it stands.
func TestReadmeBuilds(t *testing.T) {
	goFiles(t) // makes them inputs of this test's cached result
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	var blocks [][][]byte
	for file, want := range map[string]int{"README.md": 3, "docs/poller.md": 1, "docs/projection.md": 1} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		found := slices.DeleteFunc(goBlock.FindAllSubmatch(text, -1), func(b [][]byte) bool { return !bytes.HasPrefix(b[1], []byte("package ")) })
		if len(found) < want {
			t.Fatalf("only %d Go blocks found in %s, want %d", len(found), file, want)
		}
		blocks = append(blocks, found...)
	}

	// To the go command each block is a package of this module.
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	args := []string{"build", "-overlay", filepath.Join(dir, "overlay.json")}
	for i, b := range blocks {
		file := filepath.Join(dir, fmt.Sprintf("block%d.go", i+1))
		if err := os.WriteFile(file, b[1], 0o600); err != nil {
			t.Fatal(err)
		}
		pkg := fmt.Sprintf("readme/block%d", i+1)
		overlay.Replace[filepath.Join(root, filepath.FromSlash(pkg), "main.go")] = file
		args = append(args, module+"/"+pkg)
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(args[2], data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go build: %v\n%s", err, out)
	}
}
