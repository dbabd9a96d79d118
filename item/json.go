package item

import (
	"bytes"
	"slices"

	"github.com/sluicehq/sluice/internal/jsonscan"
)

// JSON controls how items are written as plain JSON. The zero JSON writes maps and
// sets in stored order.
type JSON struct {
	SortedKeys bool // sort the keys of every map by bytes
	SortedSets bool // sort the members of every set: texts by bytes, numbers by size, binary by base64
}

// AppendJSON appends the item as plain JSON: exact numbers, sets as arrays, binary
// as base64. Strings keep their escapes. The output is no longer than the item. An
// absent item is null. form is at most one JSON.
func (it Item) AppendJSON(dst []byte, form ...JSON) []byte {
	return Value{kind: M, raw: it.raw}.AppendJSON(dst, form...)
}

// AppendJSON appends the value as plain JSON, as Item.AppendJSON does.
func (v Value) AppendJSON(dst []byte, form ...JSON) []byte {
	if v.kind == Invalid || v.raw == nil {
		return append(dst, "null"...)
	}
	w := jsonWriter{b: v.raw, dst: slices.Grow(dst, len(v.raw))}
	if len(form) > 0 {
		w.JSON = form[0]
	}
	w.payload(v.kind, 0)
	return w.dst
}

// jsonWriter transcodes b, which Parser has checked, to dst. Its methods take the
// offset of a value and return the offset after it.
type jsonWriter struct {
	JSON
	b, dst []byte
}

// payload writes the value inside the tag of kind.
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
		if w.SortedKeys {
			return w.sortedAttrs(i)
		}
		return w.attrs(i)
	case SS, NS, BS:
		if w.SortedSets {
			return w.sortedSet(kind, i)
		}
		return w.array(kind, i)
	case L:
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
		inner := jsonWriter{JSON: w.JSON, b: a.value.raw, dst: w.dst}
		inner.payload(a.value.kind, 0)
		w.dst = inner.dst
	}
	w.dst = append(w.dst, '}')
	return end
}

// sortedSet writes the array of a set whose bracket stands at i.
func (w *jsonWriter) sortedSet(kind Kind, i int) int {
	var few [16]int // avoids the heap
	members := few[:0]
	end := i
	for end++; ; {
		if end = jsonscan.Space(w.b, end); w.b[end] == ']' {
			break
		}
		if w.b[end] == ',' {
			end = jsonscan.Space(w.b, end+1)
		}
		members = append(members, end)
		end = jsonscan.StringEnd(w.b, end)
	}
	if len(members) > len(few) {
		slices.SortFunc(members, func(i, j int) int { return w.compare(kind, i, j) })
	} else {
		for n := range members {
			for ; n > 0 && w.compare(kind, members[n-1], members[n]) > 0; n-- {
				members[n-1], members[n] = members[n], members[n-1]
			}
		}
	}
	w.dst = append(w.dst, '[')
	for n, m := range members {
		if n > 0 {
			w.dst = append(w.dst, ',')
		}
		w.payload(member(kind), m)
	}
	w.dst = append(w.dst, ']')
	return end + 1
}

// compare orders the members of a set of kind that stand at i and j.
func (w *jsonWriter) compare(kind Kind, i, j int) int {
	s := textBytes(w.b[i:jsonscan.StringEnd(w.b, i)])
	t := textBytes(w.b[j:jsonscan.StringEnd(w.b, j)])
	if kind == NS {
		return compareNumbers(s, t)
	}
	return bytes.Compare(s, t)
}
