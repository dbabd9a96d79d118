package config

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// meantField suggests a field for an unknown one in a type with those names. If another
// type has the field, it names the right place.
func meantField(name string, in reflect.Type, names []string) string {
	problem := meant(name, names)
	if strings.HasPrefix(problem, "did you mean") {
		return problem
	}
	const most = 3 // places to name
	homes := fieldHomes()[name]
	homes = slices.DeleteFunc(slices.Clone(homes), func(h home) bool { return h.typ == in })
	if len(homes) == 0 || len(homes) > most {
		return problem
	}
	var paths []string
	for _, h := range homes {
		paths = append(paths, h.path)
	}
	return "it is a field of " + either(paths) + "; here " + problem
}

// home is a type that has a field, and the type's place in a file.
type home struct {
	typ  reflect.Type
	path string
}

// fieldHomes returns the types that have a field, by the field's name.
var fieldHomes = sync.OnceValue(func() map[string][]home {
	homes := map[string][]home{}
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type, path string)
	visit = func(t reflect.Type, path string) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		names, at := fieldsOf(t)
		for _, name := range names {
			if path == "" {
				homes[name] = append(homes[name], home{t, "the file itself"})
			} else {
				homes[name] = append(homes[name], home{t, path})
			}
			visit(t.Field(at[name]).Type, join(path, name))
		}
	}
	visit(reflect.TypeFor[Config](), "")
	return homes
})
