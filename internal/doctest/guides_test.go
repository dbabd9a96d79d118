package doctest

import (
	"fmt"
	"go/parser"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The tests that guides show pass. Each is run with the program before it and
// the page's files, in a module of its own, as a reader would.
func TestGuidesTests(t *testing.T) {
	c := newChecker(t)
	dir := t.TempDir()
	n := 0
	for _, p := range pages(t) {
		if !strings.HasPrefix(p.name, "docs/guides/") {
			continue
		}
		var program *block
		for i, b := range p.blocks {
			switch {
			case b.kind != "go":
			case isProgram(b):
				program = &p.blocks[i]
			case (isTest(b) || strings.HasPrefix(b.text, "func Test")) && program != nil:
				n++
				pkg := filepath.Join(dir, fmt.Sprintf("%s-%d", strings.TrimSuffix(filepath.Base(p.name), ".md"), b.line))
				for _, f := range p.blocks {
					writeFile(t, pkg, f)
				}
				writeFile(t, pkg, block{file: "main.go", text: program.text})
				writeFile(t, pkg, block{file: "main_test.go", text: c.testFile(t, b)})
			}
		}
	}
	if n == 0 {
		t.Fatal("no guide has a test")
	}
	writeModule(t, root(t), dir)
	cmd := exec.CommandContext(t.Context(), "go", "test", "-trimpath", "-timeout", "2h", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GONOSUMDB=*", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go test: %v\n%s", err, out)
	}
}

// testFile returns the text of a block as a test file. It adds a header and imports if
// the block has none.
func (c *checker) testFile(t *testing.T, b block) string {
	t.Helper()
	if isTest(b) {
		return b.text
	}
	f, err := parser.ParseFile(c.fset, "", "package main\n"+b.text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%s:%d: %v", b.page, b.line, err)
	}
	return "package main;" + c.imports(f, nil) + "\n" + b.text
}

// writeModule makes dir a module that uses this module's folder, and this module's
// versions of everything else.
func writeModule(t *testing.T, root, dir string) {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module "+module, "module example.com/guides", 1) +
		fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %[1]s => %s\n", module, root)
	writeFile(t, dir, block{file: "go.mod", text: text})
	writeFile(t, dir, block{file: "go.sum", text: string(sum)})
}
