package item

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// tagOptions are the options of a field's tag that affect decoding.
type tagOptions uint8

const asString tagOptions = 1 << iota // a number may stand in an S

// field is one field of a struct or of an embedded struct.
type field struct {
	name     string
	untagged int // 0 if the tag has the name, else 1
	index    []int
	plan     plan
}

// parseTag returns the name and options of a field's tag, and whether to ignore
// the field. The other options affect encoding only. unixtime changes nothing:
// Decode always accepts a number as Unix time.
func parseTag(tag reflect.StructTag) (name string, opts tagOptions, ignore bool) {
	name, rest, _ := strings.Cut(tag.Get("dynamodbav"), ",")
	if slices.Contains(strings.Split(rest, ","), "string") {
		opts |= asString
	}
	return name, opts, name == "-"
}

// fieldsOf lists the fields that take attributes. As in Go, the shallowest field
// of a name wins; at equal depth the tagged field wins. If several remain, none
// counts.
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
				f := found{field{name: cmp.Or(name, sf.Name), index: index}, sf.Type, opts}
				if name == "" {
					f.untagged = 1
				}
				all = append(all, f)
				if count[l.t] > 1 { // a second copy makes the name ambiguous
					all = append(all, f)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b found) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(len(a.index), len(b.index)), cmp.Compare(a.untagged, b.untagged))
	})
	var fields []field
	for len(all) > 0 {
		f := all[0]
		n := 1
		for n < len(all) && all[n].name == f.name {
			n++
		}
		if n == 1 || len(all[1].index) > len(f.index) || f.untagged < all[1].untagged {
			f.plan = planOf(f.t, f.opts)
			fields = append(fields, f.field)
		}
		all = all[n:]
	}
	slices.SortFunc(fields, func(a, b field) int { return slices.Compare(a.index, b.index) })
	return fields
}

func structPlan(t reflect.Type) plan {
	names := newFieldNames(fieldsOf(t))
	return func(v Value, rv reflect.Value) error {
		if v.kind != M {
			return mismatch(v, rv)
		}
		var few [64]bool
		exact := few[:] // fields that matched an attribute exactly
		if len(names.fields) > len(few) {
			exact = make([]bool, len(names.fields))
		}
		rest := 0
		for c := v.Map().cursor(); c.next(); {
			name := textBytes(c.name)
			if i, ok := names.exact[string(name)]; ok {
				exact[i] = true
				if err := names.fields[i].decode(c.value, rv, name); err != nil {
					return err
				}
			} else {
				rest++
			}
		}
		if rest == 0 {
			return nil
		}
		for c := v.Map().cursor(); c.next(); {
			name := textBytes(c.name)
			if _, ok := names.exact[string(name)]; ok {
				continue
			}
			if i, ok := names.fold(name); ok && !exact[i] {
				if err := names.fields[i].decode(c.value, rv, name); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func (f *field) decode(v Value, rv reflect.Value, name []byte) error {
	fv, err := fieldByIndex(rv, f.index)
	if err == nil {
		err = f.plan(v, fv)
	}
	if err != nil {
		return within(string(name), err)
	}
	return nil
}

// fieldNames finds the field of an attribute.
type fieldNames struct {
	fields []field
	exact  map[string]int
	lower  map[string]int // nil if a name is not ASCII: case folding is then more complex
}

func newFieldNames(fields []field) fieldNames {
	n := fieldNames{fields, map[string]int{}, map[string]int{}}
	for i, f := range fields {
		n.exact[f.name] = i
		lower, ascii := appendLower(nil, []byte(f.name))
		if !ascii {
			n.lower = nil
		}
		if _, taken := n.lower[string(lower)]; n.lower != nil && !taken {
			n.lower[string(lower)] = i
		}
	}
	return n
}

// fold finds the first field whose name equals name, ignoring case.
func (n *fieldNames) fold(name []byte) (int, bool) {
	var buf [64]byte
	if lower, ascii := appendLower(buf[:0], name); ascii && n.lower != nil {
		i, ok := n.lower[string(lower)]
		return i, ok
	}
	i := slices.IndexFunc(n.fields, func(f field) bool { return strings.EqualFold(f.name, string(name)) })
	return i, i >= 0
}

func appendLower(dst, name []byte) (lower []byte, ascii bool) {
	for _, c := range name {
		if c >= utf8.RuneSelf {
			return nil, false
		}
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst, true
}

// fieldByIndex is reflect's FieldByIndex, but allocates nil embedded structs.
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
