package message

import (
	"strconv"
	"time"
)

// formatTime formats t as RFC 3339 in UTC, with a fraction only if needed.
func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Body builds a JSON object with members in the order of the calls, without
// spaces. Equal calls make equal bytes. The zero Body is an empty object.
type Body struct{ buf []byte }

// Str adds a string.
func (b *Body) Str(name, value string) *Body {
	b.name(name)
	b.buf = appendString(b.buf, value)
	return b
}

// Int adds a number.
func (b *Body) Int(name string, value int64) *Body {
	b.name(name)
	b.buf = strconv.AppendInt(b.buf, value, 10)
	return b
}

// JSON adds a JSON value unchanged.
func (b *Body) JSON(name string, value []byte) *Body {
	b.name(name)
	b.buf = append(b.buf, value...)
	return b
}

// Time adds a time in RFC 3339, in UTC, with a fraction only if needed.
func (b *Body) Time(name string, value time.Time) *Body { return b.Str(name, formatTime(value)) }

// Bytes returns the object. You may add more afterwards.
func (b *Body) Bytes() []byte {
	if len(b.buf) == 0 {
		return []byte("{}")
	}
	return append(b.buf[:len(b.buf):len(b.buf)], '}')
}

func (b *Body) name(name string) {
	sep := byte(',')
	if len(b.buf) == 0 {
		sep = '{'
	}
	b.buf = append(appendString(append(b.buf, sep), name), ':')
}

// appendString escapes what JSON requires, and U+FFFE and U+FFFF, which SQS
// refuses in a body. It leaves all other text unchanged.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s { // invalid UTF-8 becomes U+FFFD
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		case r == 0xFFFE || r == 0xFFFF:
			dst = append(dst, '\\', 'u', 'f', 'f', 'f', hex[r&15])
		default:
			dst = append(dst, string(r)...)
		}
	}
	return append(dst, '"')
}
