package doctest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/sluicehq/sluice"

// sources makes the module's Go files inputs of the test's cached result. The test
// cache does not see files that the go command reads.
func sources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if err == nil && (filepath.Ext(path) == ".go" || d.Name() == "go.mod" || d.Name() == "Makefile") {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func isProgram(b block) bool { return strings.HasPrefix(b.text, "package ") && !isTest(b) }

// isTest reports whether a block is a whole file of tests.
func isTest(b block) bool {
	return strings.HasPrefix(b.text, "package ") && strings.Contains(b.text, "\nfunc Test")
}

// Every Go block that has a package is a whole program, which compiles as it
// stands. It is not linked, which takes longer and shows nothing more.
func TestProgramsBuild(t *testing.T) {
	sources(t)
	programs := slices.DeleteFunc(blocks(t, "go"), func(b block) bool { return !isProgram(b) })
	if n := len(programs); n < 5 {
		t.Fatalf("only %d programs found", n)
	}
	// To the go command each block is a package of this module.
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	args := []string{"list", "-export", "-overlay", filepath.Join(dir, "overlay.json")}
	for _, b := range programs {
		pkg := fmt.Sprintf("doc/%s/line%d", strings.ReplaceAll(b.page, ".", "_"), b.line)
		file := filepath.Join(dir, strings.ReplaceAll(pkg, "/", "-")+".go")
		if err := os.WriteFile(file, []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(root(t), filepath.FromSlash(pkg), "main.go")] = file
		args = append(args, module+"/"+pkg)
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(args[3], data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go list: %v\n%s", err, out)
	}
}

// Every other Go block type-checks: its functions, fields and arguments exist.
func TestFragments(t *testing.T) {
	sources(t)
	c := newChecker(t)
	n := 0
	for _, b := range blocks(t, "go") {
		if isProgram(b) || isTest(b) {
			continue
		}
		n++
		for _, err := range c.check(b) {
			t.Errorf("%s: %v", b.page, err)
		}
	}
	if n < 15 {
		t.Fatalf("only %d fragments found", n)
	}
}

func TestFragmentsWithMistakes(t *testing.T) {
	sources(t)
	c := newChecker(t)
	for _, tt := range []struct{ text, want string }{
		{"r.Handle(\"a#INSERT\", nil)\n", ""},
		{"f := flow.Open(ctx, r, flow.Options{Window: 3})\n", ""},
		{"…\nfunc main() {\n\trun.Main(run.App{})\n}\n", ""},
		{"r.Handel(\"a#INSERT\", nil)\n", "Handel"},
		{"f := flow.Open(ctx, r, flow.Options{Windows: 3})\n", "Windows"},
		{"rooter.New()\n", "undefined: rooter"},
		{"router.New(\n", "neither statements nor declarations"},
		{"x := router.New\nx = 3\n", "cannot use 3"},
	} {
		errs := c.check(block{page: "x.md", line: 1, text: tt.text})
		if tt.want == "" && len(errs) > 0 || tt.want != "" && (len(errs) == 0 || !strings.Contains(fmt.Sprint(errs), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.text, errs, tt.want)
		}
	}
}

// checker type-checks fragments.
type checker struct {
	fset     *token.FileSet
	importer types.Importer
	paths    map[string]string // import path of each package name
	shared   *ast.File
}

// std are packages of the standard library that fragments may use.
var std = []string{
	"bytes", "context", "encoding/json", "errors", "fmt", "io", "log", "log/slog", "net/http", "net/http/httptest", "os", "path/filepath",
	"iter", "slices", "strconv", "strings", "sync", "sync/atomic", "testing", "testing/synctest", "time",
}

// made is the checker of all tests: it reads the exports of many packages.
var made *checker

func newChecker(t *testing.T) *checker {
	t.Helper()
	if made != nil {
		return made
	}
	// Nothing is tested, built or named by two packages in this list: ours come
	// first, then the standard library's, then those of other modules.
	args := append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Name}}\t{{.Export}}", "./..."}, std...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root(t)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	c := &checker{fset: token.NewFileSet(), paths: make(map[string]string)}
	exports := make(map[string]string)
	rank := func(pkg string) int {
		switch {
		case pkg == module || strings.HasPrefix(pkg, module+"/") && !strings.Contains(pkg, "/internal/") && !strings.Contains(pkg, "/examples/"):
			return 0
		case slices.Contains(std, pkg):
			return 1
		case strings.HasPrefix(pkg, module+"/examples/"):
			return 2
		case strings.HasPrefix(pkg, "github.com/aws/aws-sdk-go-v2"):
			return 3
		}
		return 9
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) < 3 {
			continue // unsafe, or without an export
		}
		exports[f[0]] = f[2]
		if have, ok := c.paths[f[1]]; rank(f[0]) < 9 && (!ok || rank(f[0]) < rank(have)) {
			c.paths[f[1]] = f[0]
		}
	}
	c.importer = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		file, ok := exports[path]
		if !ok {
			return nil, fmt.Errorf("package %s is not among those that fragments may use", path)
		}
		return os.Open(file)
	})
	if c.shared, err = parser.ParseFile(c.fset, filepath.Join("testdata", "prelude.go"), nil, parser.SkipObjectResolution); err != nil {
		t.Fatal(err)
	}
	made = c
	return c
}

func (c *checker) check(b block) (errs []error) {
	taken := []*ast.File{c.shared}
	own := filepath.Join("testdata", strings.NewReplacer("/", "-", ".md", "").Replace(b.page)+".go")
	if _, err := os.Stat(own); err == nil {
		f, err := parser.ParseFile(c.fset, own, nil, parser.SkipObjectResolution)
		if err != nil {
			return []error{err}
		}
		taken = []*ast.File{without(c.shared, declared(f)), f} // what the page declares goes before
	}
	file, err := c.parse(b, taken)
	if err != nil {
		return []error{err}
	}
	conf := types.Config{Importer: c.importer, Error: func(err error) {
		e := err.(types.Error) //nolint:errcheck // documented to be one
		for _, fine := range []string{"declared and not used", "is not used", "missing return", "and not used", "imported and not used"} {
			if strings.Contains(e.Msg, fine) {
				return
			}
		}
		if strings.HasPrefix(e.Msg, "undefined: ") && !strings.Contains(e.Msg, ".") {
			e.Msg += " (a name that the page takes for granted is declared in internal/doctest/testdata)"
		}
		errs = append(errs, fmt.Errorf("line %d: %s", c.fset.Position(e.Pos).Line, e.Msg))
	}}
	conf.Check("page", c.fset, append(taken, file), nil) //nolint:errcheck // told to Error
	return errs
}

// declared are the names that a file declares.
func declared(f *ast.File) map[string]bool {
	names := make(map[string]bool)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[d.Name.Name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names[n.Name] = true
					}
				case *ast.TypeSpec:
					names[s.Name.Name] = true
				}
			}
		}
	}
	return names
}

// without returns a file of variables, one a line, without the named ones.
func without(f *ast.File, names map[string]bool) *ast.File {
	left := *f
	left.Decls = nil
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			left.Decls = append(left.Decls, d)
			continue
		}
		copied := *g
		copied.Specs = slices.DeleteFunc(slices.Clone(g.Specs), func(s ast.Spec) bool {
			v := s.(*ast.ValueSpec) //nolint:errcheck // of a var declaration
			return names[v.Names[0].Name]
		})
		left.Decls = append(left.Decls, &copied)
	}
	return &left
}

// parse makes a file of a fragment, whose lines are those of its page.
func (c *checker) parse(b block, taken []*ast.File) (*ast.File, error) {
	text := strings.NewReplacer(": …,", ": nil,", "…", "").Replace(b.text)
	line := fmt.Sprintf("//line %s:%d\n", path.Base(b.page), b.line+1)
	var first error
	for _, form := range []string{
		"package page\n%s\n",
		"package page\nfunc _() {\n%s\n}\n",
		"package page\nfunc _() error {\n%s\n}\n",
	} {
		whole := fmt.Sprintf(form, line+text)
		f, err := parser.ParseFile(c.fset, "", whole, parser.SkipObjectResolution)
		if err != nil {
			first = err
			continue
		}
		if !strings.Contains(form, "func") || !hasReturn(f) || strings.Contains(form, "error") {
			imports := c.imports(f, taken)
			return parser.ParseFile(c.fset, "", strings.Replace(whole, "package page\n", "package page;"+imports+"\n", 1), parser.SkipObjectResolution)
		}
	}
	return nil, fmt.Errorf("line %d: neither statements nor declarations: %w", b.line, first)
}

func hasReturn(f *ast.File) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			found = found || len(n.Results) > 0
		}
		return true
	})
	return found
}

// imports returns the imports of a file: names before a dot that are not declared in
// the file or in taken.
func (c *checker) imports(f *ast.File, taken []*ast.File) string {
	have := make(map[string]bool)
	for _, t := range taken {
		maps.Copy(have, declared(t))
	}
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			have[path.Base(p)] = true
		}
	}
	want := make(map[string]bool)
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && ast.IsExported(s.Sel.Name) && c.paths[x.Name] != "" && !have[x.Name] {
				want[x.Name] = true
			}
		}
		return true
	})
	var text strings.Builder
	for name := range want {
		fmt.Fprintf(&text, "import %s %q;", name, c.paths[name])
	}
	return text.String()
}
