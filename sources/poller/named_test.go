package poller_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// waiting are statements that nothing here can show yet, and what they wait
// for. Those on leases (F035 to F041, F043, F053, complaints 9 to 11) are shown
// with one worker, or with two of which one waits; workers that share the shards
// of a stream show them again.
var waiting = map[string]string{}

// F001 to F058 are failures that users of other tools met when a stream was
// discovered, read, checkpointed and given up; the fifteen complaints are what
// they say most often. Each is a test, so that none comes back.
func TestEveryFailureIsNamed(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var tests []string
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				tests = append(tests, f.Name.Name)
			}
		}
	}
	all := strings.Join(tests, "\n") + "\n"
	look := func(format string, last int) {
		for n := range last {
			name := fmt.Sprintf(format, n+1)
			_, waits := waiting[name]
			if named := strings.Contains(all, "Test"+name); named == waits {
				t.Errorf("%s: named in a test: %v, waiting: %v; want one of the two", name, named, waits)
			}
		}
	}
	look("F%03d", 58)
	look("Complaint%02d", 15)
}
