package item

import (
	"bytes"
	"slices"
)

// JSONOption changes what AppendJSON writes.
type JSONOption func(*jsonOptions)

type jsonOptions struct{ sorted bool }

// SortedKeys orders the keys of every map by their bytes instead of as stored.
func SortedKeys() JSONOption { return func(o *jsonOptions) { o.sorted = true } }

// AppendJSON appends the item as plain JSON: exact numbers, sets as arrays,
// binary as base64. Strings keep the escapes they came with. An absent item is
// null.
func (it Item) AppendJSON(dst []byte, opts ...JSONOption) []byte {
	return Value{kind: M, raw: it.raw}.AppendJSON(dst, opts...)
}

// AppendJSON appends the value as plain JSON, as Item.AppendJSON does.
func (v Value) AppendJSON(dst []byte, opts ...JSONOption) []byte {
	var o jsonOptions
	for _, opt := range opts {
		opt(&o)
	}
	return v.appendJSON(dst, o)
}

func (v Value) appendJSON(dst []byte, o jsonOptions) []byte {
	switch v.kind {
	case S, B, BOOL:
		return append(dst, v.raw...)
	case N:
		return appendNumber(dst, textBytes(v.raw))
	case M:
		if v.raw == nil {
			break
		}
		dst = append(dst, '{')
		if o.sorted {
			dst = v.appendSorted(dst, o)
		} else {
			comma := false
			for c := v.Map().cursor(); c.next(); comma = true {
				if comma {
					dst = append(dst, ',')
				}
				dst = append(append(dst, c.name...), ':')
				dst = c.value.appendJSON(dst, o)
			}
		}
		return append(dst, '}')
	case L, SS, NS, BS:
		dst = append(dst, '[')
		comma := false
		for c := (elements{b: v.raw}); c.next(); comma = true {
			if comma {
				dst = append(dst, ',')
			}
			dst = c.element(v.kind).appendJSON(dst, o)
		}
		return append(dst, ']')
	}
	return append(dst, "null"...)
}

func (v Value) appendSorted(dst []byte, o jsonOptions) []byte {
	type attr struct {
		name, text []byte
		value      Value
	}
	var attrs []attr
	for c := v.Map().cursor(); c.next(); {
		attrs = append(attrs, attr{c.name, textBytes(c.name), c.value})
	}
	slices.SortFunc(attrs, func(a, b attr) int { return bytes.Compare(a.text, b.text) })
	for i, a := range attrs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, a.name...), ':')
		dst = a.value.appendJSON(dst, o)
	}
	return dst
}
