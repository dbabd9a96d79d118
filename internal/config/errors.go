package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Error is one mistake in a file.
type Error struct {
	File         string
	Line, Column int    // from 1, in characters; 0: unknown
	Field        string // path, such as routes[0].send.to
	Problem      string // the mistake, the allowed values, and the nearest valid name

	err error // the cause
}

// Unwrap returns the cause, such as an error of reading a file; usually nil.
func (e *Error) Unwrap() error { return e.err }

// Error returns "file:line:column: field: problem", without unknown parts.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
		}
		b.WriteString(": ")
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Problem)
	return b.String()
}

// Errors are all mistakes of a file, in file order.
type Errors []*Error

// Error returns one line for each mistake.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the mistakes.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

// sorted returns e in file order, without duplicates.
func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(e, func(a, b *Error) bool { return *a == *b })
}

// meant suggests the nearest allowed name for a wrong one, or all names if none is
// near.
func meant(name string, allowed []string) string {
	best, distance := "", 0
	for _, a := range allowed {
		d := Edits(fold(name), fold(a))
		if best == "" || d < distance {
			best, distance = a, d
		}
	}
	switch {
	case len(allowed) == 0:
		return "there is none"
	case distance <= max(1, min(len(name), len(best))/3):
		return "did you mean " + best + "?"
	case len(allowed) == 1:
		return "want " + best
	}
	return "want " + either(allowed)
}

// either joins names as "a, b or c".
func either(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// fold gives max_age, max-age, MaxAge and maxAge the same form.
func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// Edits counts the inserted, missing, changed and swapped letters between a and b. It
// does not compare long texts: they count as wholly different.
func Edits(a, b string) int {
	const long = 255 // names of tables and indices may have so many bytes
	if len(a) > long || len(b) > long {
		return len(a) + len(b)
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}

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
