// Package configref makes the JSON Schema and the reference of configuration files,
// from the tags and comments of package config's types.
package configref

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/sluicehq/sluice/internal/config"
)

// object is a struct of package config.
type object struct {
	name   string
	doc    string
	typ    reflect.Type
	fields []property
}

// property is a field of an object.
type property struct {
	name string
	doc  string
	typ  reflect.Type
	def  string // the default
	is   map[string]string
}

func (p property) required() bool { _, ok := p.is["required"]; return ok }

// objects returns the structs of a file, from Config on, in the order of their fields.
// dir is the folder of package config.
func objects(dir string) ([]object, error) {
	docs, err := comments(dir)
	if err != nil {
		return nil, err
	}
	var all []object
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(t.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[t] || isOrdered(t) {
			return
		}
		seen[t] = true
		o := object{name: t.Name(), doc: docs[t.Name()], typ: t}
		for i := range t.NumField() {
			f := t.Field(i)
			name := f.Tag.Get("yaml")
			if name == "" || name == "-" {
				continue
			}
			p := property{name: name, doc: docs[t.Name()+"."+f.Name], typ: f.Type, def: f.Tag.Get("default"), is: map[string]string{}}
			for _, rule := range strings.Split(f.Tag.Get("is"), ",") {
				if k, v, _ := strings.Cut(rule, "="); k != "" {
					p.is[k] = v
				}
			}
			if p.doc == "" {
				err = fmt.Errorf("%s.%s has no comment, which is its entry in the reference", t.Name(), f.Name)
			}
			o.fields = append(o.fields, p)
		}
		all = append(all, o)
		for _, p := range o.fields {
			visit(p.typ)
		}
	}
	visit(reflect.TypeFor[config.Config]())
	return all, err
}

// isOrdered reports whether t is an element of Texts or Fields, which are
// mappings in a file.
func isOrdered(t reflect.Type) bool {
	return t == reflect.TypeFor[config.Text]() || t == reflect.TypeFor[config.Field]()
}

// comments returns the comments of types and of fields, by "Type" and "Type.Field".
func comments(dir string) (map[string]string, error) {
	docs := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			decl, ok := n.(*ast.GenDecl)
			if !ok {
				return true
			}
			for _, spec := range decl.Specs {
				t, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				docs[t.Name.Name] = words(decl.Doc)
				s, ok := t.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, f := range s.Fields.List {
					for _, id := range f.Names {
						if docs[t.Name.Name+"."+id.Name] = words(f.Doc); f.Doc == nil {
							docs[t.Name.Name+"."+id.Name] = words(f.Comment)
						}
					}
				}
			}
			return false
		})
	}
	return docs, nil
}

func words(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }
