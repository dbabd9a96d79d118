package item

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/sluicehq/sluice/internal/jsonscan"
)

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
	switch n, ok := jsonscan.ParseDecimal(t); {
	case !ok:
		return "invalid number"
	case n.Digits > 38:
		return "number of more than 38 significant digits"
	case n.Digits > 0 && n.Exp > 126:
		return "number larger than 9.99E+125"
	case n.Digits > 0 && n.Exp < -129:
		return "number smaller than 1E-130"
	}
	return ""
}

// appendNumber appends a checked number in JSON's grammar: no plus sign, leading
// zeros or bare point. A zero loses its exponent, which may be large enough to
// trouble readers.
func appendNumber(dst, t []byte) []byte {
	if n, _ := jsonscan.ParseDecimal(t); n.Digits == 0 && bytes.ContainsAny(t, "eE") {
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
	m, _ := jsonscan.ParseDecimal(s)
	n, _ := jsonscan.ParseDecimal(t)
	if c := cmp.Compare(sign(m), sign(n)); c != 0 || m.Digits == 0 {
		return c
	}
	var a, b [40]byte
	c := cmp.Or(cmp.Compare(m.Exp, n.Exp), bytes.Compare(m.AppendDigits(a[:0], s), n.AppendDigits(b[:0], t)))
	return c * sign(m)
}

func sign(n jsonscan.Decimal) int {
	switch {
	case n.Digits == 0:
		return 0
	case n.Negative:
		return -1
	}
	return 1
}

// appendDecimal appends a checked number without exponent and redundant zeros.
// Equal numbers make equal texts.
func appendDecimal(dst, t []byte) []byte {
	n, _ := jsonscan.ParseDecimal(t)
	if n.Digits == 0 {
		return append(dst, '0')
	}
	if n.Negative {
		dst = append(dst, '-')
	}
	if n.Exp <= 0 {
		dst = append(dst, "0."...)
		for range -n.Exp {
			dst = append(dst, '0')
		}
		return n.AppendDigits(dst, t)
	}
	point := len(dst) + n.Exp
	dst = n.AppendDigits(dst, t)
	if point < len(dst) {
		return slices.Insert(dst, point, '.')
	}
	for len(dst) < point {
		dst = append(dst, '0')
	}
	return dst
}
