package item

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Attribute is a name with a value, for [Of]. [String], [Number] and [Binary] make
// the kinds that keys may have.
type Attribute struct {
	name string
	kind Kind
	text string // JSON of a BOOL or M; unquoted text of the others
}

// String is a string attribute.
func String(name, value string) Attribute { return Attribute{name, S, value} }

// Number is a number attribute; value is its decimal form.
func Number(name, value string) Attribute { return Attribute{name, N, value} }

// Binary is a binary attribute.
func Binary(name string, value []byte) Attribute {
	return Attribute{name, B, base64.StdEncoding.EncodeToString(value)}
}

// Bool is a boolean attribute.
func Bool(name string, value bool) Attribute {
	return Attribute{name, BOOL, strconv.FormatBool(value)}
}

// Map is a map attribute. The absent Item makes an empty map.
func Map(name string, value Item) Attribute {
	if !value.Exists() {
		return Attribute{name, M, "{}"}
	}
	return Attribute{name, M, string(value.raw)}
}

func (a Attribute) append(dst []byte) []byte {
	dst = append(appendString(dst, a.name), `:{"`...)
	dst = append(append(dst, a.kind.String()...), `":`...)
	if a.kind == BOOL || a.kind == M {
		dst = append(dst, a.text...)
	} else {
		dst = appendString(dst, a.text)
	}
	return append(dst, '}')
}

// Of makes an Item, such as a key:
//
//	item.Of(item.String("PK", "u-1"), item.Number("version", "3"))
//
// It panics on a duplicate name or an invalid Number. Use Parse for numbers from
// outside.
func Of(attrs ...Attribute) Item {
	dst := []byte{'{'}
	for i, a := range attrs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = a.append(dst)
	}
	it, err := Parse(append(dst, '}'))
	if err != nil {
		panic(fmt.Sprintf("item: Of: %v", err))
	}
	return it
}

// With returns a copy of the item with the given attributes. Each replaces the
// attribute of its name, or is appended. The copy shares no memory with the item.
// With panics like Of.
func (it Item) With(attrs ...Attribute) Item {
	dst := []byte{'{'}
	for name, v := range it.All() {
		if slices.ContainsFunc(attrs, func(a Attribute) bool { return a.name == name }) {
			continue
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = appendPair(appendString(dst, name), v)
	}
	for _, a := range attrs {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = a.append(dst)
	}
	with, err := Parse(append(dst, '}'))
	if err != nil {
		panic(fmt.Sprintf("item: With: %v", err))
	}
	return with
}

// Without returns a copy of the item without the named attributes. The copy shares
// no memory with the item.
func (it Item) Without(names ...string) Item {
	dst := []byte{'{'}
	for name, v := range it.All() {
		if slices.Contains(names, name) {
			continue
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = appendPair(appendString(dst, name), v)
	}
	without, err := Parse(append(dst, '}'))
	if err != nil {
		panic(fmt.Sprintf("item: Without: %v", err)) // the item was valid
	}
	return without
}

func appendPair(dst []byte, v Value) []byte {
	dst = append(append(append(dst, `:{"`...), v.Kind().String()...), `":`...)
	return append(append(dst, v.Raw()...), '}')
}

// Only returns a copy with the named attributes, in that order, and skips names
// that the item lacks. The copy shares no memory with the item. With the names of
// a table's key attributes it returns the item's key.
func (it Item) Only(names ...string) Item {
	dst := []byte{'{'}
	for _, name := range names {
		v, ok := it.get(name)
		if !ok {
			continue
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = appendPair(appendString(dst, name), v)
	}
	only, err := Parse(append(dst, '}'))
	if err != nil {
		panic(fmt.Sprintf("item: Only: %v", err)) // the item was valid
	}
	return only
}

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // never fails; invalid UTF-8 becomes U+FFFD
	return append(dst, quoted...)
}
