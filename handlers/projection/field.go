package projection

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/jsonscan"
	"github.com/sluicehq/sluice/item"
)

// Field is a field of the documents that is the projection's own. [Constant],
// [Copy], [Text] and [Computed] make them.
type Field struct {
	name  string
	err   error // why it cannot be used
	value func(dst []byte, from source) ([]byte, error)
	quote []byte // `"name":`
}

func newField(name string, value func(dst []byte, from source) ([]byte, error), err error) Field {
	return Field{name: name, value: value, err: err, quote: append(item.AppendString(nil, name), ':')}
}

// Constant is the same in every document: value as encoding/json writes it.
func Constant(name string, value any) Field {
	text, err := json.Marshal(value)
	return newField(name, func(dst []byte, _ source) ([]byte, error) { return append(dst, text...), nil }, err)
}

// Copy is the value of the attribute at path. A document of an item without it
// does not have the field.
func Copy(name, path string) Field {
	return newField(name, func(dst []byte, from source) ([]byte, error) {
		if v, ok := from.lookup(path); ok {
			dst = plain.Append(dst, v)
		}
		return dst, nil
	}, checkPath(path))
}

// Text is a string made by a template. A document of an item that has not all
// of its attributes does not have the field.
func Text(name, source string) Field {
	t, err := parseTemplate(source)
	return newField(name, t.appendString, err)
}

func (t *template) appendString(dst []byte, from source) ([]byte, error) {
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

// appendQuoted makes a JSON string of dst[start:].
func appendQuoted(dst []byte, start int) []byte {
	end := len(dst)
	dst = item.AppendString(dst, dst[start:end])
	return append(dst[:start], dst[end:]...)
}

// Computed is what f appends to dst: one JSON value, or nothing, and then the
// document does not have the field. f is given the item as it is after the
// change, or its keys where the stream has no image. It must depend on nothing
// else, since a document is written again and compared, must not keep the item
// and must be safe for concurrent use. [item.JSON], [item.AppendString] and
// item.Value's methods write values. An error is a permanent failure of the
// record.
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

// append appends the field, behind a comma where one is wanted.
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
