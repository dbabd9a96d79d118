package jsonscan

// Decimal is the parsed text of a decimal number: 0.d₁d₂d₃… · 10^exp, where d is the digits
// without zeros at either end. Leading zeros, a plus sign and a bare point are
// allowed.
type Decimal struct {
	Negative bool
	Digits   int // how many; 0 for zero
	Exp      int

	first, last int // offsets of the digits
}

// ParseDecimal parses t; ok is false when t is not a number.
func ParseDecimal(t []byte) (n Decimal, ok bool) {
	i := 0
	if i < len(t) && (t[i] == '-' || t[i] == '+') {
		n.Negative = t[i] == '-'
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
			if n.Digits == 0 {
				n.first = i
			}
			n.Digits += zeros + 1
			n.last, zeros = i+1, 0
		case n.Digits > 0:
			zeros++
		case point: // a zero between the point and the first digit
			n.Exp--
			continue
		default:
			continue
		}
		if !point {
			n.Exp++
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
	n.Exp += exp
	return n, true
}

// AppendDigits appends the digits of t, from which n was parsed.
func (n Decimal) AppendDigits(dst, t []byte) []byte {
	for _, c := range t[n.first:n.last] {
		if c != '.' {
			dst = append(dst, c)
		}
	}
	return dst
}
