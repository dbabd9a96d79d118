package item

import "github.com/sluicehq/sluice/internal/jsonscan"

// Walker goes over the attributes of an item in stored order, once, and makes
// nothing of them but what it is asked for:
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
	at   int // of the value; 0 once it has been read
}

// Walk returns a Walker before the first attribute.
func (it Item) Walk() Walker { return Walker{b: it.raw} }

// Next goes on to the next attribute, and reports false when there is none.
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

// passed goes on behind the value that ends at i.
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

// Value returns the attribute's value. It, or AppendJSON, is called once at most
// for each attribute.
func (w *Walker) Value() Value {
	end := skip(w.b, w.at)
	v := Value{kind: w.kind, raw: w.b[w.at:end:end]}
	w.passed(end)
	return v
}

// AppendJSON appends the attribute's value, without its name, as plain JSON. It,
// or Value, is called once at most for each attribute.
func (w *Walker) AppendJSON(dst []byte, j JSON) []byte {
	jw := jsonWriter{JSON: j, b: w.b, dst: dst}
	w.passed(jw.payload(w.kind, w.at))
	return jw.dst
}
