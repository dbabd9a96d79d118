// Package jsonscan checks and steps over JSON in place. Every function takes the
// whole document and an offset, so that errors have a position. No function
// allocates. A [Reader] does, for errors and escapes.
//
// It is stricter than encoding/json if that would change data silently: invalid
// UTF-8 and escapes of lone surrogates are errors.
package jsonscan

import (
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may nest in [Value]; it is that of
// encoding/json.
const MaxDepth = 10000

// Space returns the offset of the first byte at or after i that is not JSON
// white space; len(b) when there is none.
func Space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// String checks the string whose opening quote is at b[i]. It returns the offset
// after the closing quote and whether the string has an escape. A non-empty msg
// describes the mistake at offset end.
func String(b []byte, i int) (end int, escaped bool, msg string) {
	return StringRest(b, i+1)
}

// StringRest is String for a string whose part before b[i] has been checked.
func StringRest(b []byte, i int) (end int, escaped bool, msg string) {
	for i < len(b) {
		if i+8 <= len(b) {
			m := Special(Load(b, i))
			if m == 0 {
				i += 8
				continue
			}
			i += First(m)
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, escaped, ""
		case c == '\\':
			escaped = true
			if i, msg = escape(b, i); msg != "" {
				return i, true, msg
			}
		case c < 0x20:
			return i, escaped, "control character in string"
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				return i, escaped, "invalid UTF-8"
			}
			i += n
		}
	}
	return len(b), escaped, "string without end"
}

// StringEnd returns the offset after a string that has been checked, whose
// opening quote stands at b[i].
func StringEnd(b []byte, i int) int {
	i++
	for {
		if i+8 <= len(b) {
			m := quoteOrEscape(Load(b, i))
			if m == 0 {
				i += 8
				continue
			}
			i += First(m)
		}
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i += 2
		default:
			i++
		}
	}
}

// escape checks the escape whose backslash stands at b[i] and returns the
// offset after it.
func escape(b []byte, i int) (int, string) {
	if i+1 >= len(b) {
		return len(b), "string without end"
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, ""
	case 'u':
		r := hex4(b, i+2)
		switch {
		case r < 0:
			return i, "invalid \\u escape"
		case !utf16.IsSurrogate(r):
			return i + 6, ""
		case i+7 < len(b) && b[i+6] == '\\' && b[i+7] == 'u' &&
			utf16.DecodeRune(r, hex4(b, i+8)) != utf8.RuneError:
			return i + 12, ""
		}
		return i, "escape of a lone surrogate"
	}
	return i, "invalid escape"
}

// hex4 returns the value of the four hexadecimal digits at b[i:], or -1.
func hex4(b []byte, i int) rune {
	if i+4 > len(b) {
		return -1
	}
	var r rune
	for _, c := range b[i : i+4] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// AppendUnquoted appends the text of a checked string, given with its quotes.
func AppendUnquoted(dst, quoted []byte) []byte {
	b := quoted[1 : len(quoted)-1]
	for i := 0; i < len(b); {
		if b[i] != '\\' {
			j := i + 1
			for j < len(b) && b[j] != '\\' {
				j++
			}
			dst = append(dst, b[i:j]...)
			i = j
			continue
		}
		switch c := b[i+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := hex4(b, i+2)
			i += 4
			if utf16.IsSurrogate(r) {
				r = utf16.DecodeRune(r, hex4(b, i+4))
				i += 6
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
		i += 2
	}
	return dst
}

// Number checks the number at b[i] and returns the offset after it.
func Number(b []byte, i int) (end int, msg string) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b) || b[i]-'0' > 9:
		return i, "invalid number"
	case b[i] == '0':
		i++
	default:
		i = digits(b, i)
	}
	if i < len(b) && b[i] == '.' {
		j := digits(b, i+1)
		if j == i+1 {
			return j, "invalid number"
		}
		i = j
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		j := digits(b, i)
		if j == i {
			return j, "invalid number"
		}
		i = j
	}
	return i, ""
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// Value checks the value at b[i], which must not be white space, and returns
// the offset after it.
func Value(b []byte, i int) (end int, msg string) { return value(b, i, 0) }

func value(b []byte, i, depth int) (int, string) {
	if i >= len(b) {
		return i, "unexpected end"
	}
	var msg string
	switch c := b[i]; c {
	case '"':
		i, _, msg = String(b, i)
		return i, msg
	case '{', '[':
		if depth == MaxDepth {
			return i, "nested too deep"
		}
		i = Space(b, i+1)
		if i < len(b) && b[i] == c+2 {
			return i + 1, ""
		}
		for {
			if c == '{' {
				if i, msg = Name(b, i); msg != "" {
					return i, msg
				}
			}
			if i, msg = value(b, i, depth+1); msg != "" {
				return i, msg
			}
			i = Space(b, i)
			switch {
			case i >= len(b):
				return i, "unexpected end"
			case b[i] == c+2: // ']' follows '[' by two, as '}' follows '{'
				return i + 1, ""
			case b[i] != ',':
				return i, "missing comma"
			}
			i = Space(b, i+1)
		}
	case 't':
		return literal(b, i, "true")
	case 'f':
		return literal(b, i, "false")
	case 'n':
		return literal(b, i, "null")
	}
	return Number(b, i)
}

// Name checks an object member's name and colon at b[i] and returns the offset
// of its value.
func Name(b []byte, i int) (end int, msg string) {
	if i >= len(b) {
		return i, "unexpected end"
	}
	if b[i] != '"' {
		return i, "member name expected"
	}
	i, _, msg = String(b, i)
	if msg != "" {
		return i, msg
	}
	return Colon(b, i)
}

// Colon steps over white space, a colon and white space.
func Colon(b []byte, i int) (end int, msg string) {
	i = Space(b, i)
	if i >= len(b) {
		return i, "unexpected end"
	}
	if b[i] != ':' {
		return i, "missing colon"
	}
	return Space(b, i+1), ""
}

func literal(b []byte, i int, want string) (int, string) {
	if len(b)-i < len(want) || string(b[i:i+len(want)]) != want {
		return i, "invalid value"
	}
	return i + len(want), ""
}

// Loose returns the offset after the value at b[i], judging by its quotes and
// brackets alone; -1 when they do not match up. It finds the end of values
// that [Value] refuses.
func Loose(b []byte, i int) int {
	var open []byte
	for i < len(b) {
		switch c := b[i]; c {
		case '"':
			for i++; ; i++ {
				if i >= len(b) {
					return -1
				}
				if b[i] == '\\' {
					i++
				} else if b[i] == '"' {
					break
				}
			}
		case '{', '[':
			open = append(open, c+2)
		case '}', ']':
			if len(open) == 0 {
				return i // the end of what holds a bare scalar
			}
			if open[len(open)-1] != c {
				return -1
			}
			open = open[:len(open)-1]
			if len(open) == 0 {
				return i + 1
			}
			i++
			continue
		case ',', ' ', '\t', '\r', '\n':
			if len(open) == 0 {
				return i
			}
		}
		i++
		if len(open) == 0 && i <= len(b) && b[i-1] == '"' {
			return i
		}
	}
	if len(open) == 0 {
		return i
	}
	return -1
}
