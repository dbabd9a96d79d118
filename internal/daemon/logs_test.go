package daemon

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every package logs a thing under one name: searches in the log find all lines.
func TestLogKeysAreConsistent(t *testing.T) {
	camel := regexp.MustCompile(`^[a-z][a-zA-Z]*$`)
	otherNames := map[string]string{
		"err": "error", "tbl": "table", "tableName": "table", "shardID": "shard", "shardId": "shard", "seq": "sequence",
		"sequenceNumber": "sequence", "retry": "retryIn", "in": "retryIn", "queueURL": "queue", "handler": "route", "routeName": "route", "duration": "took",
	}
	calls := 0
	for _, dir := range []string{"internal/daemon", "flow", "batch", "sources", "sinks", "handlers", "deadletter", "state"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				sel, ok := call.Fun.(*ast.SelectorExpr)
				first := map[string]int{"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "Log": 3, "WarnContext": 2, "ErrorContext": 2}
				if !ok || !isLogger(sel.X) || first[sel.Sel.Name] == 0 || len(call.Args) <= first[sel.Sel.Name] || call.Ellipsis.IsValid() {
					return true
				}
				calls++
				for i := first[sel.Sel.Name]; i < len(call.Args); i += 2 {
					lit, ok := call.Args[i].(*ast.BasicLit)
					if !ok || lit.Kind != token.STRING {
						continue
					}
					key, _ := strconv.Unquote(lit.Value)
					if !camel.MatchString(key) {
						t.Errorf("%s: key %q: want camel case", fset.Position(lit.Pos()), key)
					}
					if want := otherNames[key]; want != "" {
						t.Errorf("%s: key %q: others say %q", fset.Position(lit.Pos()), key, want)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if calls < 20 {
		t.Errorf("only %d lines of the log found", calls)
	}
}

// isLogger goes by the name.
func isLogger(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return strings.Contains(strings.ToLower(x.Name), "log")
	case *ast.SelectorExpr:
		return isLogger(x.Sel)
	case *ast.CallExpr:
		return isLogger(x.Fun)
	}
	return false
}
