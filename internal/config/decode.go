package config

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder fills a Config from nodes. What a field takes stands in its tags, which
// the schema is made of, too:
//
//	yaml:"name"     its name; "-" is none
//	is:"…"          required, and min=, max= and above= of numbers and
//	                durations, one of a|b|c of texts: comma-separated
//	default:"…"     what counts without it; for readers only
type decoder struct {
	*source
	env func(string) (string, bool)
}

func (d *decoder) addAt(n *node, path, format string, args ...any) {
	d.errs = append(d.errs, &Error{File: d.name, Line: n.line, Column: n.column, Field: d.named(path), Problem: fmt.Sprintf(format, args...)})
}

// wrong notes a value of the wrong form.
func (d *decoder) wrong(n *node, path, want string) {
	switch {
	case d.bad[path]: // noted before
	case n.kind == aNull:
		d.addAt(n, path, "it has no value; want %s, or leave it out", want)
	case n.scalar():
		d.addAt(n, path, "%s is not what is wanted here: %s", d.show(path, n.text), want)
	default:
		d.addAt(n, path, "it is %s; want %s", n.what(), want)
	}
	d.bad[path] = true
}

// rules are the parsed tag "is" of a field.
type rules struct {
	required        bool
	min, max, above string
	oneOf           []string
}

func rulesOf(tag string) (r rules) {
	for _, one := range strings.Split(tag, ",") {
		name, value, _ := strings.Cut(one, "=")
		switch name {
		case "required":
			r.required = true
		case "min":
			r.min = value
		case "max":
			r.max = value
		case "above":
			r.above = value
		case "one of":
			r.oneOf = strings.Split(value, "|")
		}
	}
	return r
}

// value decodes a node into v by the rules r.
func (d *decoder) value(n *node, path string, v reflect.Value, r rules) {
	if d.bad[path] {
		return
	}
	d.at[path] = n.place
	if _, substituted := d.from[path]; substituted && n.text == "" && v.Kind() != reflect.Map && v.Kind() != reflect.Struct {
		if r.required {
			d.wrong(n, path, "something that is not empty")
		}
		return // counts as left out
	}
	switch into := v.Addr().Interface().(type) {
	case *Duration:
		d.duration(n, path, into, r)
		return
	case *Strings:
		*into = d.strings(n, path)
		return
	case *EntityType:
		d.entityType(n, path, into)
		return
	case *KeyFrom:
		d.keyFrom(n, path, into)
		return
	case *Texts:
		d.each(n, path, func(f pair, at string) {
			if value, ok := d.text(f.value, at); ok {
				*into = append(*into, Text{f.key.text, value})
			}
		})
		return
	case *Fields:
		d.each(n, path, func(f pair, at string) {
			if value, ok := d.constant(f.value, at); ok {
				*into = append(*into, Field{f.key.text, value})
			}
		})
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		d.value(n, path, p.Elem(), r)
		v.Set(p)
	case reflect.Struct:
		d.object(n, path, v)
	case reflect.Map:
		if d.mapOf(n, path, v); r.required && v.Len() == 0 && !d.badBelow(path) {
			d.wrong(n, path, "at least one")
		}
	case reflect.Slice:
		d.sliceOf(n, path, v)
	case reflect.String:
		s, ok := d.text(n, path)
		if !ok {
			return
		}
		if s == "" && r.required {
			d.wrong(n, path, "text that is not empty")
		}
		if !d.bad[path] && r.oneOf != nil && !slices.Contains(r.oneOf, s) {
			d.addAt(n, path, "%s is not allowed; %s", d.show(path, s), d.meant(path, s, r.oneOf))
			d.bad[path] = true
		}
		v.SetString(s)
	case reflect.Bool:
		if n.text != "true" && n.text != "false" || n.kind != aBoolean && !d.isText(n) {
			d.wrong(n, path, "true or false")
			return
		}
		v.SetBool(n.text == "true")
	case reflect.Int, reflect.Int64:
		d.integer(n, path, v, r)
	case reflect.Float64:
		d.float(n, path, v, r)
	default:
		panic(fmt.Sprintf("config: a field of type %v", v.Type()))
	}
}

// meant calls the function meant, and hides a name that may be a secret.
func (d *source) meant(path, value string, allowed []string) string {
	if _, ok := d.from[path]; ok {
		return "want " + either(allowed)
	}
	return meant(value, allowed)
}

// isText reports whether a scalar has no quotes, or has a variable's value.
func (d *decoder) isText(n *node) bool { return n.kind == aText && !n.quoted }

func (d *decoder) text(n *node, path string) (string, bool) {
	switch n.kind {
	case aText:
		return n.text, !d.bad[path]
	case aNumber, aBoolean:
		d.wrong(n, path, fmt.Sprintf("text, in quotes: %q", n.text))
	default:
		d.wrong(n, path, "text")
	}
	return "", false
}

func (d *decoder) integer(n *node, path string, v reflect.Value, r rules) {
	want := "a whole number"
	switch {
	case strings.HasSuffix(path, "Bytes"):
		want += " of bytes without a unit, " + cmp.Or(r.min, "0") + " or more, such as 1048576 (1 MiB)"
	case r.min != "":
		want += " of " + r.min + " or more"
	}
	if r.max != "" {
		want += ", at most " + r.max
	}
	i, err := strconv.ParseInt(n.text, 10, 64)
	zeros := strings.TrimLeft(n.text, "-")
	switch {
	case n.kind != aNumber && !d.isText(n), err != nil, len(zeros) > 1 && zeros[0] == '0' || strings.HasPrefix(n.text, "+"),
		v.OverflowInt(i), r.min != "" && i < atoi(r.min), r.max != "" && i > atoi(r.max):
		d.wrong(n, path, want)
		return
	}
	v.SetInt(i)
}

func atoi(s string) int64 {
	i, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic("config: a tag says " + s)
	}
	return i
}

func (d *decoder) float(n *node, path string, v reflect.Value, r rules) {
	want := "a number"
	if r.above != "" {
		want += " above " + r.above
	}
	f, err := strconv.ParseFloat(n.text, 64)
	switch {
	case n.kind != aNumber && !d.isText(n), err != nil, math.IsNaN(f), math.IsInf(f, 0), strings.ContainsAny(n.text, "_xXpP+iInN"),
		r.above != "" && f <= float64(atoi(r.above)):
		d.wrong(n, path, want)
		return
	}
	v.SetFloat(f)
}

func (d *decoder) duration(n *node, path string, into *Duration, r rules) {
	want := "a duration such as 30s, 5m or 1h30m"
	least, most := time.Duration(0), time.Duration(math.MaxInt64)
	if r.min != "" {
		least, _ = time.ParseDuration(r.min)
		want += ", at least " + r.min
	}
	if r.max != "" {
		most, _ = time.ParseDuration(r.max)
		want += ", at most " + r.max
	}
	v, err := parseDuration(n.text)
	if n.kind != aText || err != nil || v < least || v > most || r.min == "" && v == 0 {
		d.wrong(n, path, want)
		return
	}
	*into = Duration(v)
}

func (d *decoder) strings(n *node, path string) Strings {
	switch n.kind {
	case aText:
		if n.text == "" {
			d.wrong(n, path, "text that is not empty, or a list of such")
			return nil
		}
		return Strings{n.text}
	case aList:
	default:
		d.wrong(n, path, "text, or a list of texts")
		return nil
	}
	if len(n.items) == 0 {
		d.wrong(n, path, "at least one")
	}
	var all Strings
	for i, one := range n.items {
		at := element(path, i)
		d.at[at] = one.place
		s, ok := d.text(one, at)
		switch {
		case !ok:
		case s == "":
			d.wrong(one, at, "text that is not empty")
		case slices.Contains(all, s):
			d.addAt(one, at, "%s is there twice", d.show(at, s))
		}
		all = append(all, s)
	}
	return all
}

// entityType decodes a text as an attribute, and a list as several EntityTypes in
// order.
func (d *decoder) entityType(n *node, path string, into *EntityType) {
	switch n.kind {
	case aText:
		if n.text == "" {
			d.wrong(n, path, "the name of an attribute")
		}
		into.Attribute = n.text
	case aMapping:
		d.object(n, path, reflect.ValueOf(into).Elem())
	case aList:
		if len(n.items) == 0 {
			d.wrong(n, path, "at least one")
		}
		into.First = make([]EntityType, len(n.items))
		for i, one := range n.items {
			at := element(path, i)
			d.at[at] = one.place
			if one.kind == aList {
				d.wrong(one, at, "an attribute, or one of attribute, key and tables")
				continue
			}
			d.entityType(one, at, &into.First[i])
		}
	default:
		d.wrong(n, path, "the name of an attribute, one of attribute, key and tables, or a list of such")
	}
}

// keyFrom also decodes a list: attributes with the same name in parent and child.
func (d *decoder) keyFrom(n *node, path string, into *KeyFrom) {
	if n.kind == aMapping {
		if d.mapOf(n, path, reflect.ValueOf(into).Elem()); len(*into) == 0 {
			d.wrong(n, path, "at least one")
		}
		return
	}
	*into = KeyFrom{}
	for _, name := range d.strings(n, path) {
		(*into)[name] = name
	}
}

// missing lists the choices for a missing field.
var missing = map[string]string{"Project.version": "; " + versions}

func (d *decoder) object(n *node, path string, v reflect.Value) {
	names, at := fieldsOf(v.Type())
	if n.kind == aNull && path != "" {
		d.wrong(n, path, "a mapping; {} is one with its defaults")
		return
	}
	if n.kind != aMapping {
		d.wrong(n, path, "a mapping with "+either(names))
		return
	}
	broken := false
	seen := d.keys(n, path)
	for _, f := range seen {
		i, known := at[f.key.text]
		if !known {
			d.addAt(f.key, path, "unknown field %q; %s", f.key.text, meantField(f.key.text, v.Type(), names))
			broken = true
			continue
		}
		sub := join(path, f.key.text)
		field := v.Type().Field(i)
		d.value(f.value, sub, v.Field(i), rulesOf(field.Tag.Get("is")))
		if k := f.value.kind; k == aMapping || k == aList {
			d.at[sub] = f.key.place
		}
	}
	for _, name := range names {
		field := v.Type().Field(at[name])
		has := slices.ContainsFunc(seen, func(p pair) bool { return p.key.text == name })
		if !has && rulesOf(field.Tag.Get("is")).required && !broken {
			d.addAt(n, join(path, name), "it is missing%s", missing[v.Type().Name()+"."+name])
			d.bad[join(path, name)] = true
		}
	}
	if broken { // the unknown field may be a misspelled required one
		d.bad[path+"?"] = true
	}
}

// keys returns the fields of a mapping; of repeated names the first.
func (d *decoder) keys(n *node, path string) []pair {
	var kept []pair
	lines := map[string]int{}
	for _, f := range n.fields {
		if line, twice := lines[f.key.text]; twice {
			d.addAt(f.key, path, "%s is there twice; it stands in line %d, too", d.showName(join(path, f.key.text), f.key.text), line)
			continue
		}
		lines[f.key.text] = f.key.line
		kept = append(kept, f)
	}
	return kept
}

func (d *decoder) mapOf(n *node, path string, v reflect.Value) {
	if n.kind == aMapping {
		v.Set(reflect.MakeMap(v.Type()))
	}
	d.each(n, path, func(f pair, at string) {
		one := reflect.New(v.Type().Elem()).Elem()
		d.value(f.value, at, one, rules{above: "0"})
		if f.value.kind == aMapping || f.value.kind == aList {
			d.at[at] = f.key.place
		}
		v.SetMapIndex(reflect.ValueOf(f.key.text), one)
	})
}

// each calls do for every field of a mapping of names, in file order.
func (d *decoder) each(n *node, path string, do func(f pair, at string)) {
	if n.kind != aMapping {
		d.wrong(n, path, "a mapping of names")
		return
	}
	for _, f := range d.keys(n, path) {
		if f.key.text == "" {
			d.addAt(f.key, path, "a name is empty")
			continue
		}
		at := join(path, f.key.text)
		d.at[at] = f.value.place
		do(f, at)
	}
}

// constant is text, a number, true, false or null.
func (d *decoder) constant(n *node, path string) (any, bool) {
	switch n.kind {
	case aText:
		return n.text, !d.bad[path]
	case aBoolean:
		return n.text == "true", true
	case aNull:
		return nil, true
	case aNumber:
		if i, err := strconv.ParseInt(n.text, 10, 64); err == nil && strconv.FormatInt(i, 10) == n.text {
			return i, true
		}
		if f, err := strconv.ParseFloat(n.text, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) && !strings.ContainsAny(n.text, "_xXpP") {
			return f, true
		}
	}
	d.wrong(n, path, "text, a number of 64 bits, true, false or null")
	return nil, false
}

func (d *decoder) sliceOf(n *node, path string, v reflect.Value) {
	if n.kind != aList {
		d.wrong(n, path, "a list")
		return
	}
	for i, one := range n.items {
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(one, element(path, i), e, rules{})
		v.Set(reflect.Append(v, e))
	}
}

// fieldsOf returns the names of a type's fields, and the index of each.
func fieldsOf(t reflect.Type) (names []string, at map[string]int) {
	at = map[string]int{}
	for i := range t.NumField() {
		name := t.Field(i).Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		names = append(names, name)
		at[name] = i
	}
	return names, at
}

// parseDuration parses a duration as package time does, and refuses negative ones.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil && d < 0 || strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
		return 0, cmp.Or(err, fmt.Errorf("%q is negative", s))
	}
	return d, err
}
