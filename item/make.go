package item

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
)

// Attribute is a name with a value, for [Of]. [String], [Number] and [Binary] make
// the kinds that keys may have.
type Attribute struct {
	name string
	kind Kind
	json string // the value inside the type tag
}

// String is a string attribute.
func String(name, value string) Attribute { return quoted(name, S, value) }

// Number is a number attribute; value is its decimal form.
func Number(name, value string) Attribute { return quoted(name, N, value) }

// Binary is a binary attribute.
func Binary(name string, value []byte) Attribute {
	return quoted(name, B, base64.StdEncoding.EncodeToString(value))
}

// Bool is a boolean attribute.
func Bool(name string, value bool) Attribute {
	return Attribute{name, BOOL, strconv.FormatBool(value)}
}

// Map is a map attribute. The absent Item makes an empty map.
func Map(name string, value Item) Attribute {
	return Attribute{name, M, cmp.Or(string(value.raw), "{}")}
}

func quoted(name string, kind Kind, text string) Attribute {
	var buf [64]byte
	return Attribute{name, kind, string(AppendString(buf[:0], text))}
}

func attributeOf(name string, v Value) Attribute { return Attribute{name, v.kind, string(v.raw)} }

// Of makes an Item, such as a key:
//
//	item.Of(item.String("PK", "u-1"), item.Number("version", "3"))
//
// It panics on a duplicate name or an invalid Number. Use Parse for numbers from
// outside.
func Of(attrs ...Attribute) Item { return build("Of", attrs) }

// build makes an Item for the exported function of that name.
func build(function string, attrs []Attribute) Item {
	dst := []byte{'{'}
	for i, a := range attrs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, a.name), `:{"`...)
		dst = append(append(dst, a.kind.String()...), `":`...)
		dst = append(append(dst, a.json...), '}')
	}
	it, err := Parse(append(dst, '}'))
	if err != nil {
		panic(fmt.Sprintf("item: %s: %v", function, err))
	}
	return it
}

// With returns a copy of the item with the given attributes. Each replaces the
// attribute of its name, or is appended. The copy shares no memory with the item.
// With panics like Of.
func (it Item) With(attrs ...Attribute) Item {
	all := make([]Attribute, 0, it.Len()+len(attrs))
	for name, v := range it.All() {
		if !slices.ContainsFunc(attrs, func(a Attribute) bool { return a.name == name }) {
			all = append(all, attributeOf(name, v))
		}
	}
	return build("With", append(all, attrs...))
}

// Without returns a copy of the item without the named attributes. The copy shares
// no memory with the item.
func (it Item) Without(names ...string) Item {
	var rest []Attribute
	for name, v := range it.All() {
		if !slices.Contains(names, name) {
			rest = append(rest, attributeOf(name, v))
		}
	}
	return build("Without", rest)
}

// Only returns a copy with the named attributes, in that order, and skips names
// that the item lacks. The copy shares no memory with the item. With the names of
// a table's key attributes it returns the item's key.
func (it Item) Only(names ...string) Item {
	some := make([]Attribute, 0, len(names))
	for _, name := range names {
		if v, ok := it.get(name); ok {
			some = append(some, attributeOf(name, v))
		}
	}
	return build("Only", some)
}
