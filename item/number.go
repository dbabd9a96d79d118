package item

import (
	"bytes"
	"cmp"
	"strconv"

	"github.com/sluicehq/sluice/internal/jsonscan"
)

// number is the parsed text of an N: 0.d₁d₂d₃… · 10^exp, where d is the digits
// without zeros at either end. Leading zeros, a plus sign and a bare point are
// allowed.
type number struct {
	negative bool
	first    int // offset of the first digit that is not 0
	last     int // offset after the last one
	digits   int // between them, without the point; 0 for zero
	exp      int
}

// parseNumber parses t; ok is false when t is not a number.
func parseNumber(t []byte) (n number, ok bool) {
	i := 0
	if i < len(t) && (t[i] == '-' || t[i] == '+') {
		n.negative = t[i] == '-'
		i++
	}
	seen, point := false, false
	zeros := 0 // since the last digit that is not 0
	for ; i < len(t); i++ {
		c := t[i]
		if c == '.' {
			if point {
				return n, false
			}
			point = true
			continue
		}
		if c-'0' > 9 {
			break
		}
		seen = true
		switch {
		case c != '0':
			if n.digits == 0 {
				n.first = i
			}
			n.digits += zeros + 1
			n.last, zeros = i+1, 0
		case n.digits > 0:
			zeros++
		case point: // a zero between the point and the first digit
			n.exp--
			continue
		default:
			continue
		}
		if !point {
			n.exp++
		}
	}
	if !seen {
		return n, false
	}
	if i == len(t) {
		return n, true
	}
	if t[i]|0x20 != 'e' {
		return n, false
	}
	i++
	negative := false
	if i < len(t) && (t[i] == '-' || t[i] == '+') {
		negative = t[i] == '-'
		i++
	}
	if i == len(t) {
		return n, false
	}
	exp := 0
	for ; i < len(t); i++ {
		if t[i]-'0' > 9 {
			return n, false
		}
		exp = min(exp*10+int(t[i]-'0'), 1<<20)
	}
	if negative {
		exp = -exp
	}
	n.exp += exp
	return n, true
}

// plainNumber returns the offset after the quote that ends the number at b[i], if
// the number has at most 38 digits and one point. Such a number is always valid.
// Otherwise it returns -1.
func plainNumber(b []byte, i int) int {
	start, points := i, 0
	for i+8 <= len(b) {
		m := jsonscan.NonDigit(jsonscan.Load(b, i))
		if m == 0 {
			i += 8
			continue
		}
		i += jsonscan.First(m)
		switch {
		case b[i] == '"':
			if n := i - start - points; n == 0 || n > 38 {
				return -1
			}
			return i + 1
		case b[i] != '.' || points > 0:
			return -1
		}
		points++
		i++
	}
	return -1
}

// checkNumber describes the mistake in the text of an N: more than 38 significant
// digits, or a magnitude outside 1E-130 to 9.99…E+125.
func checkNumber(t []byte) string {
	switch n, ok := parseNumber(t); {
	case !ok:
		return "invalid number"
	case n.digits > 38:
		return "number of more than 38 significant digits"
	case n.digits > 0 && n.exp > 126:
		return "number larger than 9.99E+125"
	case n.digits > 0 && n.exp < -129:
		return "number smaller than 1E-130"
	}
	return ""
}

// appendCanonical appends the same text for equal numbers.
func appendCanonical(dst, t []byte) []byte {
	n, _ := parseNumber(t)
	if n.digits == 0 {
		return append(dst, '0')
	}
	if n.negative {
		dst = append(dst, '-')
	}
	for _, c := range t[n.first:n.last] {
		if c != '.' {
			dst = append(dst, c)
		}
	}
	return strconv.AppendInt(append(dst, 'e'), int64(n.exp), 10)
}

// appendNumber appends a checked number in JSON's grammar: no plus sign, leading
// zeros or bare point. A zero loses its exponent, which may be large enough to
// trouble readers.
func appendNumber(dst, t []byte) []byte {
	if n, _ := parseNumber(t); n.digits == 0 && bytes.ContainsAny(t, "eE") {
		return append(dst, '0')
	}
	if end, msg := jsonscan.Number(t, 0); msg == "" && end == len(t) {
		return append(dst, t...)
	}
	if t[0] == '-' {
		dst = append(dst, '-')
	}
	if t[0] == '-' || t[0] == '+' {
		t = t[1:]
	}
	for len(t) > 1 && t[0] == '0' && t[1]-'0' <= 9 {
		t = t[1:]
	}
	if t[0] == '.' {
		dst = append(dst, '0')
	}
	for i, c := range t {
		if c == '.' && (i+1 == len(t) || t[i+1]-'0' > 9) {
			continue
		}
		dst = append(dst, c)
	}
	return dst
}

// compareNumbers orders two checked numbers.
func compareNumbers(s, t []byte) int {
	m, _ := parseNumber(s)
	n, _ := parseNumber(t)
	if c := cmp.Compare(m.sign(), n.sign()); c != 0 || m.digits == 0 {
		return c
	}
	c := cmp.Or(cmp.Compare(m.exp, n.exp), compareDigits(s[m.first:m.last], t[n.first:n.last]))
	return c * m.sign()
}

func (n number) sign() int {
	switch {
	case n.digits == 0:
		return 0
	case n.negative:
		return -1
	}
	return 1
}

// compareDigits compares digits from the first one on; it ignores points.
func compareDigits(s, t []byte) int {
	for {
		if len(s) > 0 && s[0] == '.' {
			s = s[1:]
		}
		if len(t) > 0 && t[0] == '.' {
			t = t[1:]
		}
		if len(s) == 0 || len(t) == 0 || s[0] != t[0] {
			return bytes.Compare(s[:min(1, len(s))], t[:min(1, len(t))])
		}
		s, t = s[1:], t[1:]
	}
}

// appendDecimal appends a checked number without exponent and redundant zeros.
// Equal numbers make equal texts.
func appendDecimal(dst, t []byte) []byte {
	n, _ := parseNumber(t)
	if n.digits == 0 {
		return append(dst, '0')
	}
	if n.negative {
		dst = append(dst, '-')
	}
	if n.exp <= 0 {
		dst = append(dst, "0."...)
		for range -n.exp {
			dst = append(dst, '0')
		}
	}
	written := 0
	for _, c := range t[n.first:n.last] {
		if c == '.' {
			continue
		}
		if written == n.exp && written > 0 {
			dst = append(dst, '.')
		}
		dst = append(dst, c)
		written++
	}
	for ; written < n.exp; written++ {
		dst = append(dst, '0')
	}
	return dst
}
