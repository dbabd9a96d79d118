package streamtest

import (
	"strconv"
	"strings"
)

// decimal is a parsed number: digits · 10^exp. digits has no zero at either end,
// and is empty for zero.
type decimal struct {
	negative bool
	digits   string
	exp      int
}

// parseDecimal parses the text of an N that item.Parse has checked.
func parseDecimal(text string) decimal {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	exp, _ := strconv.Atoi(exponent)
	whole, fraction, _ := strings.Cut(strings.TrimLeft(mantissa, "+-"), ".")
	all := strings.TrimLeft(whole+fraction, "0")
	digits := strings.TrimRight(all, "0")
	return decimal{
		negative: mantissa[0] == '-' && digits != "",
		digits:   digits, exp: exp - len(fraction) + len(all) - len(digits),
	}
}

// append appends the number in the form that DynamoDB returns: without exponent,
// plus sign or redundant zeros.
func (d decimal) append(dst []byte) []byte {
	if d.digits == "" {
		return append(dst, '0')
	}
	if d.negative {
		dst = append(dst, '-')
	}
	point := len(d.digits) + d.exp // number of digits before the point
	switch {
	case d.exp >= 0:
		return append(append(dst, d.digits...), strings.Repeat("0", d.exp)...)
	case point <= 0:
		return append(append(append(dst, "0."...), strings.Repeat("0", -point)...), d.digits...)
	}
	return append(append(append(dst, d.digits[:point]...), '.'), d.digits[point:]...)
}

// size returns the number's bytes as DynamoDB counts them: one, plus one per pair
// of significant digits, paired from the point, plus one for a minus sign.
func (d decimal) size() int {
	if d.digits == "" {
		return 1
	}
	first, last := len(d.digits)+d.exp-1, d.exp // powers of ten
	n := 2 + first>>1 - last>>1
	if d.negative {
		n++
	}
	return n
}
