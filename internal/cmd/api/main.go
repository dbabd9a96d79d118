// Command api prints the public surface of the module: one line for each exported
// constant, variable, function, type, method and field of each package that a
// program outside of it can import, commands and examples left out.
//
//	go run ./internal/cmd/api
//
// The lines are sorted, so that a diff shows what a change adds and removes.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	text, err := surface(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
	fmt.Print(text)
}

// private are the folders without packages for users.
var private = []string{"internal", "testdata", "cmd", "examples", "bench", "deploy", "docs", "tools"}

// surface returns a line with the counts, and then the lines of all packages below
// root.
func surface(root string) (string, error) {
	var api listing
	err := filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); dir != root && (slices.Contains(private, name) || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		return api.add(root, dir)
	})
	slices.Sort(api.lines)
	return fmt.Sprintf("# %d packages, %d names, %d methods, %d fields\n%s\n", api.packages, api.names, api.methods, api.fields, strings.Join(api.lines, "\n")), err
}

type listing struct {
	lines                            []string
	packages, names, methods, fields int
}

// add lists the package in the folder dir, if there is one.
func (l *listing) add(root, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	path, err := filepath.Rel(root, dir)
	if err != nil {
		return err
	}
	found := false
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		found = true
		for _, decl := range file.Decls {
			l.declaration(filepath.ToSlash(path), decl)
		}
	}
	if found {
		l.packages++
	}
	return nil
}

func (l *listing) declaration(pkg string, decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if !decl.Name.IsExported() {
			return
		}
		signature := strings.TrimPrefix(source(decl.Type), "func")
		if decl.Recv == nil {
			l.names++
			l.line(pkg, "func %s%s", decl.Name, signature)
		} else if receiver := source(decl.Recv.List[0].Type); ast.IsExported(strings.TrimLeft(receiver, "*")) {
			l.methods++
			l.line(pkg, "method (%s) %s%s", receiver, decl.Name, signature)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					l.typeSpec(pkg, spec)
				}
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					if name.IsExported() {
						l.names++
						l.line(pkg, "%s %s", decl.Tok, name)
					}
				}
			}
		}
	}
}

func (l *listing) typeSpec(pkg string, spec *ast.TypeSpec) {
	l.names++
	switch kind := spec.Type.(type) {
	case *ast.StructType:
		l.line(pkg, "type %s struct", spec.Name)
		for _, field := range kind.Fields.List {
			names := field.Names
			if len(names) == 0 {
				embedded := source(field.Type)
				names = []*ast.Ident{ast.NewIdent(embedded[strings.LastIndexAny(embedded, "*.")+1:])}
			}
			for _, name := range names {
				if name.IsExported() {
					l.fields++
					l.line(pkg, "field %s.%s %s", spec.Name, name, source(field.Type))
				}
			}
		}
	case *ast.InterfaceType:
		l.line(pkg, "type %s interface", spec.Name)
		for _, method := range kind.Methods.List {
			for _, name := range method.Names {
				if name.IsExported() {
					l.methods++
					l.line(pkg, "method (%s) %s%s", spec.Name, name, strings.TrimPrefix(source(method.Type), "func"))
				}
			}
		}
	default:
		assign := ""
		if spec.Assign.IsValid() {
			assign = "= "
		}
		l.line(pkg, "type %s %s%s", spec.Name, assign, source(spec.Type))
	}
}

func (l *listing) line(pkg, format string, args ...any) {
	l.lines = append(l.lines, pkg+": "+fmt.Sprintf(format, args...))
}

// source returns the text of a type on one line.
func source(node ast.Node) string {
	var text bytes.Buffer
	if err := printer.Fprint(&text, token.NewFileSet(), node); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(text.String()), " ")
}
