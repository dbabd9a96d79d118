package item

import "github.com/sluicehq/sluice/internal/jsonscan"

// Walker iterates over the attributes of an item once, in stored order. It decodes
// only the values that you ask for:
//
//	for w := it.Walk(); w.Next(); {
//		if string(w.Name().Text()) != "secret" {
//			dst = w.AppendJSON(dst, item.JSON{})
//		}
//	}
type Walker struct {
	b    []byte
	i    int // of the brace or comma before the next attribute
	name Name
	kind Kind
	at   int // of the value; 0 after it was read
}

// Walk returns a Walker before the first attribute.
func (it Item) Walk() Walker { return Walker{b: it.raw} }

// Next moves to the next attribute. It reports false at the end.
func (w *Walker) Next() bool {
	b := w.b
	if len(b) == 0 {
		return false
	}
	if w.at > 0 {
		w.passed(skip(b, w.at))
	}
	i := w.i
	if b[i] == '}' {
		return false
	}
	if i++; b[i] != '"' {
		if i = jsonscan.Space(b, i); b[i] == '}' {
			w.i = i
			return false
		}
	}
	end := jsonscan.StringEnd(b, i)
	w.name = b[i:end]
	if b[end] == ':' && b[end+1] == '{' {
		i = end + 1
	} else {
		i, _ = jsonscan.Colon(b, end)
	}
	w.kind, w.at = tagAt(b, i)
	return true
}

// passed moves behind the value that ends at i.
func (w *Walker) passed(i int) {
	b := w.b
	if b[i] != '}' {
		i = jsonscan.Space(b, i)
	}
	if i++; b[i] != ',' {
		i = jsonscan.Space(b, i)
	}
	w.i, w.at = i, 0
}

// Name returns the attribute's name.
func (w *Walker) Name() Name { return w.name }

// Kind returns the type of the attribute's value.
func (w *Walker) Kind() Kind { return w.kind }

// Value returns the attribute's value. Call Value or AppendJSON at most once per
// attribute.
func (w *Walker) Value() Value {
	end := skip(w.b, w.at)
	v := Value{kind: w.kind, raw: w.b[w.at:end:end]}
	w.passed(end)
	return v
}

// AppendJSON appends the attribute's value, without its name, as plain JSON. Call
// Value or AppendJSON at most once per attribute.
func (w *Walker) AppendJSON(dst []byte, j JSON) []byte {
	jw := jsonWriter{JSON: j, b: w.b, dst: dst}
	w.passed(jw.payload(w.kind, w.at))
	return jw.dst
}
