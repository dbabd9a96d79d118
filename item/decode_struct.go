package item

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"
)

// tagOptions are the options of a field's tag that matter for decoding.
type tagOptions uint8

const asString tagOptions = 1 << iota // a number may stand in an S

// field is one field of a struct, or of one embedded in it.
type field struct {
	name   string
	tagged bool
	index  []int
	plan   plan
}

// parseTag returns the name and options of a field's tag, and whether the
// field takes no attribute. Other options than string matter for encoding
// only; unixtime changes nothing, because numbers are Unix times anyway.
func parseTag(tag reflect.StructTag) (name string, opts tagOptions, ignore bool) {
	name, rest, _ := strings.Cut(tag.Get("dynamodbav"), ",")
	if slices.Contains(strings.Split(rest, ","), "string") {
		opts |= asString
	}
	return name, opts, name == "-"
}

// fieldsOf lists the fields that take attributes, by Go's rules for embedded
// structs: of fields with one name the least deep counts, among those the one
// named by a tag, and none when that leaves several.
func fieldsOf(t reflect.Type) []field {
	type level struct {
		t     reflect.Type
		index []int
	}
	type found struct {
		field
		t    reflect.Type
		opts tagOptions
	}
	var all []found
	visited := map[reflect.Type]bool{}
	for next := []level{{t: t}}; len(next) > 0; {
		current := next
		next = nil
		count := map[reflect.Type]int{}
		for _, l := range current {
			count[l.t]++
		}
		for _, l := range current {
			if visited[l.t] {
				continue
			}
			visited[l.t] = true
			for i := range l.t.NumField() {
				sf := l.t.Field(i)
				if !sf.IsExported() && !sf.Anonymous {
					continue
				}
				name, opts, ignore := parseTag(sf.Tag)
				if ignore {
					continue
				}
				ft := sf.Type
				if ft.Name() == "" && ft.Kind() == reflect.Pointer {
					ft = ft.Elem()
				}
				index := append(slices.Clone(l.index), i)
				if sf.Anonymous && name == "" && ft.Kind() == reflect.Struct {
					next = append(next, level{ft, index})
					continue
				}
				if !sf.IsExported() {
					continue
				}
				f := found{field{cmp.Or(name, sf.Name), name != "", index, nil}, sf.Type, opts}
				all = append(all, f)
				if count[l.t] > 1 { // a second one, to make the name ambiguous
					all = append(all, f)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b found) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(len(a.index), len(b.index)), compareBool(b.tagged, a.tagged))
	})
	var fields []field
	for len(all) > 0 {
		f := all[0]
		n := 1
		for n < len(all) && all[n].name == f.name {
			n++
		}
		if n == 1 || len(all[1].index) > len(f.index) || f.tagged && !all[1].tagged {
			f.plan = planOf(f.t, f.opts)
			fields = append(fields, f.field)
		}
		all = all[n:]
	}
	slices.SortFunc(fields, func(a, b field) int { return slices.Compare(a.index, b.index) })
	return fields
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func structPlan(t reflect.Type) plan {
	fields := fieldsOf(t)
	byName := make(map[string]*field, len(fields))
	for i := range fields {
		byName[fields[i].name] = &fields[i]
	}
	return func(v Value, rv reflect.Value) error {
		if v.kind != M {
			return mismatch(v, rv)
		}
		for c := v.Map().cursor(); c.next(); {
			name := textBytes(c.name)
			f := byName[string(name)]
			if f == nil {
				if f = foldedField(fields, string(name)); f == nil {
					continue
				}
				if _, exact := v.Map().get(f.name); exact {
					continue
				}
			}
			fv, err := fieldByIndex(rv, f.index)
			if err == nil {
				err = f.plan(c.value, fv)
			}
			if err != nil {
				return within(string(name), err)
			}
		}
		return nil
	}
}

func foldedField(fields []field, name string) *field {
	for i := range fields {
		if strings.EqualFold(fields[i].name, name) {
			return &fields[i]
		}
	}
	return nil
}

// fieldByIndex is reflect's, but makes embedded structs that are nil pointers.
func fieldByIndex(rv reflect.Value, index []int) (reflect.Value, error) {
	for i, x := range index {
		if i > 0 && rv.Kind() == reflect.Pointer {
			if rv.IsNil() {
				if !rv.CanSet() {
					return rv, &DecodeError{Type: rv.Type(), Err: errors.New("an embedded pointer to an unexported struct cannot be set")}
				}
				rv.Set(reflect.New(rv.Type().Elem()))
			}
			rv = rv.Elem()
		}
		rv = rv.Field(x)
	}
	return rv, nil
}
