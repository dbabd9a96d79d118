package item

import (
	"bytes"
	"slices"

	"github.com/sluicehq/sluice/internal/jsonscan"
)

// JSONOption changes what AppendJSON writes.
type JSONOption func(*jsonOptions)

type jsonOptions struct{ sorted bool }

// SortedKeys orders the keys of every map by their bytes instead of as stored.
func SortedKeys() JSONOption { return func(o *jsonOptions) { o.sorted = true } }

// AppendJSON appends the item as plain JSON: exact numbers, sets as arrays,
// binary as base64. Strings keep the escapes they came with. What is appended
// is no longer than the item. An absent item is null.
func (it Item) AppendJSON(dst []byte, opts ...JSONOption) []byte {
	return Value{kind: M, raw: it.raw}.AppendJSON(dst, opts...)
}

// AppendJSON appends the value as plain JSON, as Item.AppendJSON does.
func (v Value) AppendJSON(dst []byte, opts ...JSONOption) []byte {
	if v.kind == Invalid || v.raw == nil {
		return append(dst, "null"...)
	}
	w := jsonWriter{b: v.raw, dst: slices.Grow(dst, len(v.raw))}
	if len(opts) > 0 { // options go to the heap
		var o jsonOptions
		for _, opt := range opts {
			opt(&o)
		}
		w.sorted = o.sorted
	}
	w.payload(v.kind, 0)
	return w.dst
}

// jsonWriter transcodes b, which Parser has checked, to dst. Its methods take
// the offset of what they write and return the one after it.
type jsonWriter struct {
	b, dst []byte
	sorted bool
}

// payload writes what the tag of kind holds.
func (w *jsonWriter) payload(kind Kind, i int) int {
	b := w.b
	switch kind {
	case S, B:
		end := jsonscan.StringEnd(b, i)
		w.dst = append(w.dst, b[i:end]...)
		return end
	case N:
		if b[i+1]-'1' < 9 { // no sign and no leading zero
			if end := plainNumber(b, i+1); end >= 0 && b[end-2] != '.' {
				w.dst = append(w.dst, b[i+1:end-1]...)
				return end
			}
		}
		end := jsonscan.StringEnd(b, i)
		w.dst = appendNumber(w.dst, textBytes(b[i:end]))
		return end
	case M:
		if w.sorted {
			return w.sortedAttrs(i)
		}
		return w.attrs(i)
	case L, SS, NS, BS:
		return w.array(kind, i)
	case BOOL:
		end := skip(b, i)
		w.dst = append(w.dst, b[i:end]...)
		return end
	}
	w.dst = append(w.dst, "null"...)
	return skip(b, i)
}

// attrs writes the map whose brace stands at i.
func (w *jsonWriter) attrs(i int) int {
	b := w.b
	w.dst = append(w.dst, '{')
	for i++; ; {
		if b[i] != '"' {
			if i = jsonscan.Space(b, i); b[i] == '}' {
				w.dst = append(w.dst, '}')
				return i + 1
			}
		}
		name := i
		if i = jsonscan.StringEnd(b, i); b[i] == ':' {
			i++
			w.dst = append(w.dst, b[name:i]...)
		} else {
			w.dst = append(append(w.dst, b[name:i]...), ':')
			i, _ = jsonscan.Colon(b, i)
		}
		i = w.typed(jsonscan.Space(b, i))
		if b[i] != ',' {
			if i = jsonscan.Space(b, i); b[i] == '}' {
				continue
			}
		}
		w.dst = append(w.dst, ',')
		i++
	}
}

// typed writes the {"tag":value} at i.
func (w *jsonWriter) typed(i int) int {
	b := w.b
	kind, i := tagAt(b, i)
	if i = w.payload(kind, i); b[i] == '}' {
		return i + 1
	}
	return jsonscan.Space(b, i) + 1
}

// array writes the array of an L or a set whose bracket stands at i.
func (w *jsonWriter) array(kind Kind, i int) int {
	b := w.b
	w.dst = append(w.dst, '[')
	for i++; ; {
		if i = jsonscan.Space(b, i); b[i] == ']' {
			w.dst = append(w.dst, ']')
			return i + 1
		}
		if b[i] == ',' {
			w.dst = append(w.dst, ',')
			i = jsonscan.Space(b, i+1)
		}
		if kind == L {
			i = w.typed(i)
		} else {
			i = w.payload(member(kind), i)
		}
	}
}

func (w *jsonWriter) sortedAttrs(i int) int {
	type attr struct {
		name, text []byte
		value      Value
	}
	end := skip(w.b, i)
	var attrs []attr
	for c := (cursor{b: w.b[i:end]}); c.next(); {
		attrs = append(attrs, attr{c.name, textBytes(c.name), c.value})
	}
	slices.SortFunc(attrs, func(a, b attr) int { return bytes.Compare(a.text, b.text) })
	w.dst = append(w.dst, '{')
	for i, a := range attrs {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(append(w.dst, a.name...), ':')
		inner := jsonWriter{b: a.value.raw, dst: w.dst, sorted: true}
		inner.payload(a.value.kind, 0)
		w.dst = inner.dst
	}
	w.dst = append(w.dst, '}')
	return end
}
