package projection

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/jsonscan"
	"github.com/sluicehq/sluice/item"
)

// Field is a field that the projection adds to documents. [Constant], [Copy],
// [Text] and [Computed] make Fields.
type Field struct {
	name  string
	err   error // why it is unusable
	value func(dst []byte, from source) ([]byte, error)
	quote []byte // `"name":`
}

func newField(name string, value func(dst []byte, from source) ([]byte, error), err error) Field {
	return Field{name: name, value: value, err: err, quote: append(item.AppendString(nil, name), ':')}
}

// Constant is the same in every document: value, encoded by encoding/json.
func Constant(name string, value any) Field {
	text, err := json.Marshal(value)
	return newField(name, func(dst []byte, _ source) ([]byte, error) { return append(dst, text...), nil }, err)
}

// Copy is the value of the attribute at path. If the item lacks it, the document
// lacks the field.
func Copy(name, path string) Field {
	return newField(name, func(dst []byte, from source) ([]byte, error) {
		if v, ok := from.lookup(path); ok {
			dst = v.AppendJSON(dst, plain)
		}
		return dst, nil
	}, checkPath(path))
}

// Text is a string from a template. If the item lacks one of its attributes, the
// document lacks the field.
func Text(name, source string) Field {
	t, err := ParseTemplate(source)
	return newField(name, t.appendString, err)
}

func (t *Template) appendString(dst []byte, from source) ([]byte, error) {
	start := len(dst)
	dst, f := t.append(dst, from)
	switch {
	case f.path == "":
		return appendQuoted(dst, start), nil
	case f.kind == item.Invalid:
		return dst[:start], nil
	}
	return dst, f.err(*t)
}

// appendQuoted turns dst[start:] into a JSON string.
func appendQuoted(dst []byte, start int) []byte {
	end := len(dst)
	dst = item.AppendString(dst, dst[start:end])
	return append(dst[:start], dst[end:]...)
}

// Computed is the JSON value that f appends to dst. If f appends nothing, the
// document lacks the field. f gets the item after the change, or its keys if the
// stream has no image. f must depend only on the item, because documents are
// written again and compared. It must not keep the item, and must be safe for
// concurrent use. [item.JSON], [item.AppendString] and methods of item.Value write
// values. An error fails the record permanently.
func Computed(name string, f func(dst []byte, it sluice.Item) ([]byte, error)) Field {
	var err error
	if f == nil {
		err = errors.New("the function is missing")
	}
	return newField(name, func(dst []byte, from source) ([]byte, error) {
		start := len(dst)
		it := from.image
		if !it.Exists() {
			it = from.keys
		}
		dst, err := f(dst, it)
		if err != nil || len(dst) == start {
			return dst, err
		}
		if len(dst) < start {
			return dst, errors.New("the function took away what it was given")
		}
		if end, msg := jsonscan.Value(dst[start:], 0); msg != "" || end != len(dst)-start {
			return dst, errors.New("the function appended something other than one JSON value")
		}
		return dst, nil
	}, err)
}

// append appends the field, after a comma if needed.
func (f *Field) append(dst []byte, from source) ([]byte, error) {
	before := len(dst)
	if dst[before-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, f.quote...)
	start := len(dst)
	dst, err := f.value(dst, from)
	if err != nil {
		return dst, fmt.Errorf("field %q: %w", f.name, err)
	}
	if len(dst) == start {
		dst = dst[:before]
	}
	return dst, nil
}
