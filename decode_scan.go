package sluice

import (
	"github.com/sluicehq/sluice/internal/jsonscan"
)

// The functions below step through an object's members:
//
//	more, i := d.open(i)
//	for more {
//		name, v := d.name(i)
//		… i = after the value, or -1
//		more, i = d.more(i)
//	}
//	return i // after the object, or -1 on a failure

// open steps into the object at i.
func (d *decoder) open(i int) (more bool, at int) {
	b := d.b
	if b[i] != '{' {
		return false, d.fail(i, "an object is expected")
	}
	i = jsonscan.Space(b, i+1)
	if i < len(b) && b[i] == '}' {
		return false, i + 1
	}
	return true, i
}

// more steps over the comma or the brace at i.
func (d *decoder) more(i int) (more bool, at int) {
	b := d.b
	if i < 0 {
		return false, -1
	}
	if i+1 < len(b) && b[i] == ',' && b[i+1] == '"' {
		return true, i + 1
	}
	i = jsonscan.Space(b, i)
	switch {
	case i >= len(b):
		return false, d.fail(i, "unexpected end")
	case b[i] == '}':
		return false, i + 1
	case b[i] != ',':
		return false, d.fail(i, "missing comma")
	}
	return true, jsonscan.Space(b, i+1)
}

// name checks the member's name at i and returns it with the offset of the
// value, or -1.
func (d *decoder) name(i int) (name []byte, v int) {
	b := d.b
	if i >= len(b) || b[i] != '"' {
		return nil, d.fail(i, "member name expected")
	}
	end, escaped, msg := jsonscan.String(b, i)
	if msg != "" {
		return nil, d.fail(end, msg)
	}
	name = b[i+1 : end-1]
	if escaped {
		name = jsonscan.AppendUnquoted(nil, b[i:end])
	}
	if end+1 < len(b) && b[end] == ':' && b[end+1] > ' ' {
		return name, end + 1
	}
	if v, msg = jsonscan.Colon(b, end); msg != "" {
		return nil, d.fail(v, msg)
	}
	if v >= len(b) {
		return nil, d.fail(v, "unexpected end")
	}
	return name, v
}

// nameAt returns the text of the checked name at b[i].
func nameAt(b []byte, i int) string {
	return string(jsonscan.AppendUnquoted(nil, b[i:jsonscan.StringEnd(b, i)]))
}

// text reads the string or null at v; nil is null. The text aliases the page
// unless it holds escapes.
func (d *decoder) text(v int, name string) (t []byte, end int) {
	b := d.b
	if b[v] != '"' {
		if b[v] != 'n' {
			return nil, d.fail(v, name+" is not a string")
		}
		return nil, d.skip(v)
	}
	end, escaped, msg := jsonscan.String(b, v)
	if msg != "" {
		return nil, d.fail(end, name+": "+msg)
	}
	if escaped {
		return jsonscan.AppendUnquoted([]byte{}, b[v:end]), end
	}
	return b[v+1 : end-1], end
}

// skip checks the value at v and returns the offset after it.
func (d *decoder) skip(v int) int {
	end, msg := jsonscan.Value(d.b, v)
	if msg != "" {
		return d.fail(end, msg)
	}
	return end
}

// copy returns t as a string that shares one allocation with the page's other
// strings.
func (d *decoder) copy(t []byte) string {
	if d.strings.Cap()-d.strings.Len() < len(t) {
		chunk := min(max(2*d.strings.Cap(), 64), 64<<10)
		d.strings.Reset()
		d.strings.Grow(max(chunk, len(t)))
	}
	start := d.strings.Len()
	d.strings.Write(t)
	return d.strings.String()[start:]
}
