package item

import (
	"bytes"

	"github.com/sluicehq/sluice/internal/jsonscan"
)

// The functions of this file read bytes that Parser has checked.

// cursor walks over the attributes of a map in stored order.
type cursor struct {
	b     []byte
	i     int    // of the brace or comma before the next attribute
	name  []byte // with its quotes
	value Value
}

func (it Item) cursor() cursor { return cursor{b: it.raw} }

func (c *cursor) next() bool {
	b := c.b
	if len(b) == 0 {
		return false
	}
	i := c.i
	if b[i] == '}' {
		return false
	}
	if i++; b[i] != '"' {
		if i = jsonscan.Space(b, i); b[i] == '}' {
			return false
		}
	}
	end := jsonscan.StringEnd(b, i)
	c.name = b[i:end]
	c.value, i = valueAfter(b, end)
	if b[i] != ',' {
		i = jsonscan.Space(b, i)
	}
	c.i = i
	return true
}

// nextBut is next without the attributes for whose names skip reports true.
func (c *cursor) nextBut(skip func(name []byte) bool) bool {
	for c.next() {
		if !skip(textBytes(c.name)) {
			return true
		}
	}
	return false
}

// pass moves past the next attribute if its bytes equal attribute: everything
// between the brace or comma before it and the comma or brace after it.
func (c *cursor) pass(attribute []byte) bool {
	end := c.i + 1 + len(attribute)
	if end >= len(c.b) || c.b[end] != ',' && c.b[end] != '}' || !bytes.Equal(c.b[c.i+1:end], attribute) {
		return false
	}
	c.i = end
	return true
}

// valueAfter reads the typed value that follows the name that ends at b[i:].
func valueAfter(b []byte, i int) (Value, int) {
	if b[i] == ':' && b[i+1] == '{' {
		return valueAt(b, i+1)
	}
	i, _ = jsonscan.Colon(b, i)
	return valueAt(b, i)
}

// valueAt reads the {"tag":value} at b[i] and returns the offset after it.
func valueAt(b []byte, i int) (Value, int) {
	kind, i := tagAt(b, i)
	end := skip(b, i)
	v := Value{kind: kind, raw: b[i:end:end]}
	if b[end] != '}' {
		end = jsonscan.Space(b, end)
	}
	return v, end + 1
}

// tagAt reads the tag of the {"tag":value} at b[i] and returns it with the
// offset of the value.
func tagAt(b []byte, i int) (Kind, int) {
	if i+8 <= len(b) {
		if w := jsonscan.Load(b, i); w&valueMask == valueForm {
			kind := shortKinds[byte(w>>16)]
			if i += 5; b[i] <= ' ' {
				i = jsonscan.Space(b, i)
			}
			return kind, i
		}
	}
	i = jsonscan.Space(b, i+1)
	end := jsonscan.StringEnd(b, i)
	kind := kindOf(b[i+1 : end-1])
	i, _ = jsonscan.Colon(b, end)
	return kind, i
}

// skip returns the offset after the JSON value at b[i].
func skip(b []byte, i int) int {
	switch b[i] {
	case '"':
		return jsonscan.StringEnd(b, i)
	case 't', 'n':
		return i + len("true")
	case 'f':
		return i + len("false")
	}
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i = jsonscan.StringEnd(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
}

// elements walks over the elements of an array.
type elements struct {
	b          []byte
	start, end int // of the current element
}

func (c *elements) next() bool {
	b := c.b
	i := c.end // at the bracket, a comma or the end
	if b[i] == ']' {
		return false
	}
	if i = jsonscan.Space(b, i+1); b[i] == ']' {
		return false
	}
	c.start, c.end = i, jsonscan.Space(b, skip(b, i))
	return true
}

// element returns the current element of a list or set of kind.
func (c *elements) element(kind Kind) Value {
	if kind == L {
		v, _ := valueAt(c.b, c.start)
		return v
	}
	end := skip(c.b, c.start)
	return Value{kind: member(kind), raw: c.b[c.start:end:end]}
}

// text returns the text of a JSON string; quoted includes the quotes.
func text(quoted []byte) string { return string(textBytes(quoted)) }

// textBytes is text without a copy, except for strings with escapes.
func textBytes(quoted []byte) []byte {
	if body := quoted[1 : len(quoted)-1]; bytes.IndexByte(body, '\\') < 0 {
		return body
	}
	return jsonscan.AppendUnquoted(nil, quoted)
}

func textIs(quoted []byte, s string) bool {
	if body := quoted[1 : len(quoted)-1]; bytes.IndexByte(body, '\\') < 0 {
		return string(body) == s
	}
	return string(jsonscan.AppendUnquoted(nil, quoted)) == s
}
