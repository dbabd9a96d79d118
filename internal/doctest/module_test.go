//go:build integration

package doctest

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	modules "golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

// released is the version under which the test's proxy serves the working tree.
const released = "v0.1.0"

// Somebody with an empty folder can use the module: by the README's commands, from a
// proxy, with the versions of libraries that its tests use.
func TestModuleForOthers(t *testing.T) {
	sources(t)
	readme := string(readFile(t, filepath.Join(root(t), "README.md")))
	program, steps := "", ""
	for _, b := range parsePage("README.md", readme).blocks {
		switch {
		case b.kind == "go" && isProgram(b):
			program = b.text
		case b.kind == "sh" && strings.Contains(b.text, "go mod init"):
			steps = b.text
		}
	}
	const install = "go install " + module + "/cmd/sluice@latest"
	if program == "" || !strings.Contains(steps, "go get "+module+"@latest\n") || !strings.Contains(readme, "`"+install+"`\n") {
		t.Fatalf("README.md lacks a program, its go get %s@latest, or %s", module, install)
	}

	dir := t.TempDir()
	proxy := filepath.Join(dir, "proxy")
	serveModule(t, proxy)
	app, bin := filepath.Join(dir, "app"), filepath.Join(dir, "bin")
	if err := os.Mkdir(app, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main.go": program,
		"sdk.go":  "package main\n\nimport _ \"" + module + "/run\"\n", // which calls AWS
	} {
		if err := os.WriteFile(filepath.Join(app, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var has struct{ GOMODCACHE, GOPROXY string }
	out, err := exec.CommandContext(t.Context(), "go", "env", "-json", "GOMODCACHE", "GOPROXY").Output()
	if err == nil {
		err = json.Unmarshal(out, &has)
	}
	if err != nil {
		t.Fatalf("go env: %v", err)
	}
	// Libraries are of the machine's cache, as a proxy; of another proxy if they are not
	// there. The programs contain no path of a folder, so that Go's cache has it next time.
	env := append(os.Environ(), "GOPROXY="+strings.Join([]string{fileURL(proxy), fileURL(filepath.Join(has.GOMODCACHE, "cache", "download")), has.GOPROXY}, ","),
		"GOMODCACHE="+filepath.Join(dir, "cache"), "GOBIN="+bin, "GOFLAGS=-trimpath -modcacherw -ldflags=-w", "GOSUMDB=off", "GOWORK=off", "GONOPROXY=none", "GO111MODULE=on")
	run := func(script string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
		cmd.Dir, cmd.Env = app, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	run(steps)
	run(install)
	if out := run(filepath.Join(bin, "sluice") + " version"); !strings.HasPrefix(out, "sluice "+released+" ") {
		t.Errorf("sluice version: %s", out)
	}

	ours, theirs := requirements(t, filepath.Join(root(t), "go.mod")), requirements(t, filepath.Join(app, "go.mod"))
	if theirs[module] != released {
		t.Errorf("the program requires %s %s, want %s", module, theirs[module], released)
	}
	delete(theirs, module)
	if theirs["github.com/aws/aws-sdk-go-v2"] == "" {
		t.Errorf("the program requires no SDK, only %v", theirs)
	}
	for path, version := range theirs {
		if ours[path] != version {
			t.Errorf("the program requires %s %s, and Sluice %q", path, version, ours[path])
		}
	}
}

// go install …@latest refuses a module with replace or exclude, and never takes a
// version that is retracted.
func TestModuleCanBeInstalled(t *testing.T) {
	m := readModule(t, filepath.Join(root(t), "go.mod"))
	if n := len(m.Replace) + len(m.Exclude) + len(m.Retract); n > 0 {
		t.Errorf("go.mod has %d directives replace, exclude or retract", n)
	}
}

func readModule(t *testing.T, path string) *modfile.File {
	t.Helper()
	m, err := modfile.Parse(path, readFile(t, path), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// requirements are the versions that a go.mod file requires.
func requirements(t *testing.T, path string) map[string]string {
	t.Helper()
	versions := make(map[string]string)
	for _, r := range readModule(t, path).Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions
}

// fileURL is the URL of a folder.
func fileURL(dir string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String()
}

// serveModule makes dir a proxy that has the working tree as the released version.
func serveModule(t *testing.T, dir string) {
	t.Helper()
	dir = filepath.Join(dir, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	mod := readFile(t, filepath.Join(root(t), "go.mod"))
	for name, data := range map[string][]byte{
		"list": []byte(released + "\n"), released + ".mod": mod,
		released + ".info": fmt.Appendf(nil, `{"Version":%q,"Time":"2026-01-31T15:04:05Z"}`, released),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var files []modzip.File
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && path != root(t) && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "build", "dist", "node_modules"}, d.Name())) {
				return filepath.SkipDir // not committed
			}
			return err
		}
		rel, err := filepath.Rel(root(t), path)
		files = append(files, treeFile{filepath.ToSlash(rel), path})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, released+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := modzip.Create(f, modules.Version{Path: module, Version: released}, files); err != nil {
		t.Fatal(err)
	}
}

// treeFile is a file of the working tree.
type treeFile struct{ rel, path string }

func (f treeFile) Path() string                 { return f.rel }
func (f treeFile) Lstat() (os.FileInfo, error)  { return os.Lstat(f.path) }
func (f treeFile) Open() (io.ReadCloser, error) { return os.Open(f.path) }
