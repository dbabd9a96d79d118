package item

import (
	"encoding/base64"
	"iter"
	"strconv"
	"strings"
)

// Kind is the type of a Value, named by its DynamoDB tag.
type Kind uint8

const (
	Invalid Kind = iota
	S
	N
	B
	BOOL
	NULL
	M
	L
	SS
	NS
	BS
)

var kindNames = [...]string{"invalid", "S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"}

// String returns the DynamoDB tag.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return kindNames[Invalid]
	}
	return kindNames[k]
}

func kindOf(tag []byte) Kind {
	for k, name := range kindNames {
		if string(tag) == name {
			return Kind(k)
		}
	}
	return Invalid
}

// Value is one typed attribute value; it aliases its item.
type Value struct {
	kind Kind
	raw  []byte // the JSON value inside the type tag
}

// Kind returns the value's type; Invalid for the zero Value.
func (v Value) Kind() Kind { return v.kind }

// Raw returns the JSON value inside the type tag. Do not change it.
func (v Value) Raw() []byte { return v.raw }

// Str returns the text of an S or the digits of an N as stored, and "" for other
// kinds. The string is a copy.
func (v Value) Str() string {
	if v.kind != S && v.kind != N {
		return ""
	}
	return text(v.raw)
}

// Text is Str without the copy: it aliases the item unless the text has escapes.
func (v Value) Text() []byte {
	if v.kind != S && v.kind != N {
		return nil
	}
	return textBytes(v.raw)
}

// Is reports whether v is the S text.
func (v Value) Is(text string) bool { return v.kind == S && textIs(v.raw, text) }

// Bool returns the value of a BOOL; false for other kinds.
func (v Value) Bool() bool { return v.kind == BOOL && v.raw[0] == 't' }

// Int64 returns an N as an integer. ok is false if v is not an N, is out of range,
// or is written with a point or exponent (1.0, 1E2). DynamoDB never writes
// integers so.
func (v Value) Int64() (int64, bool) {
	if v.kind != N {
		return 0, false
	}
	n, err := strconv.ParseInt(string(textBytes(v.raw)), 10, 64)
	return n, err == nil
}

// Float64 returns an N as the nearest float64; false when v is not an N.
func (v Value) Float64() (float64, bool) {
	if v.kind != N {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(textBytes(v.raw)), 64)
	return f, err == nil
}

// Bytes returns the decoded bytes of a B, and nil for other kinds. The slice is a
// copy, and not nil when v is a B.
func (v Value) Bytes() []byte {
	if v.kind != B {
		return nil
	}
	return unbase64(v.raw)
}

// Map returns the attributes of an M; the absent Item for other kinds.
func (v Value) Map() Item {
	if v.kind != M {
		return Item{}
	}
	return Item{raw: v.raw}
}

// List iterates over the elements of an L.
func (v Value) List() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.kind != L {
			return
		}
		for c := (elements{b: v.raw}); c.next(); {
			if !yield(c.element(L)) {
				return
			}
		}
	}
}

// Set iterates over the members of an SS, NS or BS as Values of kind S, N or B.
func (v Value) Set() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if member(v.kind) == Invalid {
			return
		}
		for c := (elements{b: v.raw}); c.next(); {
			if !yield(c.element(v.kind)) {
				return
			}
		}
	}
}

// Len returns the number of elements of an M, L or set, the bytes of an S, N or B,
// and 0 for other kinds.
func (v Value) Len() int {
	switch v.kind {
	case S, N:
		return len(textBytes(v.raw))
	case B:
		return len(unbase64(v.raw))
	case M:
		return v.Map().Len()
	case L, SS, NS, BS:
		n := 0
		for c := (elements{b: v.raw}); c.next(); {
			n++
		}
		return n
	}
	return 0
}

// Lookup finds an element of an M or L by a dotted path, as Item.Lookup does.
func (v Value) Lookup(path string) (Value, bool) {
	switch v.kind {
	case M:
		return v.Map().Lookup(path)
	case L:
		index, rest, more := strings.Cut(path, ".")
		n, err := strconv.ParseUint(index, 10, 31)
		if err != nil || strconv.FormatUint(n, 10) != index {
			return Value{}, false
		}
		for e := range v.List() {
			if n == 0 {
				if more {
					return e.Lookup(rest)
				}
				return e, true
			}
			n--
		}
	}
	return Value{}, false
}

func member(k Kind) Kind {
	switch k {
	case SS:
		return S
	case NS:
		return N
	case BS:
		return B
	}
	return Invalid
}

func unbase64(quoted []byte) []byte {
	t := textBytes(quoted)
	dst := make([]byte, base64.StdEncoding.DecodedLen(len(t)))
	n, _ := base64.StdEncoding.Decode(dst, t) // checked when the item was made
	return dst[:n:n]
}
