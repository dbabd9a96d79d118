package jsonscan

import (
	"errors"
	"strings"
)

// Reader steps through a document. Its methods take the offset of a value and
// return the offset after it, or -1 with Err set. The methods for objects step
// through the members:
//
//	more, i := r.Open(i)
//	for more {
//		name, v := r.Name(i)
//		… i = after the value, or -1
//		more, i = r.More(i)
//	}
//	return i // after the object, or -1 on a failure
type Reader struct {
	B []byte

	Off int // offset of the failure
	Err error
}

// Fail notes a failure at i.
func (r *Reader) Fail(i int, msg string) int {
	r.Off, r.Err = i, errors.New(msg)
	return -1
}

// Open steps into the object at i.
func (r *Reader) Open(i int) (more bool, at int) {
	b := r.B
	if i >= len(b) || b[i] != '{' {
		return false, r.Fail(i, "an object is expected")
	}
	i = Space(b, i+1)
	if i < len(b) && b[i] == '}' {
		return false, i + 1
	}
	return true, i
}

// More steps over the comma or the brace at i.
func (r *Reader) More(i int) (more bool, at int) {
	b := r.B
	if i < 0 {
		return false, -1
	}
	if i+1 < len(b) && b[i] == ',' && b[i+1] == '"' {
		return true, i + 1
	}
	i = Space(b, i)
	switch {
	case i >= len(b):
		return false, r.Fail(i, "unexpected end")
	case b[i] == '}':
		return false, i + 1
	case b[i] != ',':
		return false, r.Fail(i, "missing comma")
	}
	return true, Space(b, i+1)
}

// Name checks the member's name at i and returns it with the offset of the
// value, or -1.
func (r *Reader) Name(i int) (name []byte, v int) {
	b := r.B
	if i >= len(b) || b[i] != '"' {
		return nil, r.Fail(i, "member name expected")
	}
	end, escaped, msg := String(b, i)
	if msg != "" {
		return nil, r.Fail(end, msg)
	}
	name = b[i+1 : end-1]
	if escaped {
		name = AppendUnquoted(nil, b[i:end])
	}
	if end+1 < len(b) && b[end] == ':' && b[end+1] > ' ' {
		return name, end + 1
	}
	if v, msg = Colon(b, end); msg != "" {
		return nil, r.Fail(v, msg)
	}
	if v >= len(b) {
		return nil, r.Fail(v, "unexpected end")
	}
	return name, v
}

// Text reads the string or null at v; nil is null. The text aliases the page
// unless it holds escapes.
func (r *Reader) Text(v int, name string) (t []byte, end int) {
	b := r.B
	if b[v] != '"' {
		if b[v] != 'n' {
			return nil, r.Fail(v, name+" is not a string")
		}
		return nil, r.Skip(v)
	}
	end, escaped, msg := String(b, v)
	if msg != "" {
		return nil, r.Fail(end, name+": "+msg)
	}
	if escaped {
		return AppendUnquoted([]byte{}, b[v:end]), end
	}
	return b[v+1 : end-1], end
}

// Skip checks the value at v and returns the offset after it.
func (r *Reader) Skip(v int) int {
	end, msg := Value(r.B, v)
	if msg != "" {
		return r.Fail(end, msg)
	}
	return end
}

// LooksLike names the value at b[i], which is not an object, for people.
func LooksLike(b []byte, i int) string {
	if i >= len(b) {
		return "empty"
	}
	switch b[i] {
	case '[':
		return "a bare array"
	case '"':
		return "a JSON string"
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	}
	switch {
	case b[i] == '-' || b[i]-'0' <= 9:
		return "a number"
	case strings.HasPrefix(string(b[i:min(len(b), i+3)]), "\uFEFF"):
		return "text behind a byte order mark (the bytes EF BB BF), which JSON does not allow: save it as UTF-8 without one"
	}
	return "no JSON"
}
