package item

// checkNumber says what is wrong with the text of an N: a decimal number with
// optional sign, point and exponent, of at most 38 significant digits and a
// magnitude between 1E-130 and 9.99…E+125.
func checkNumber(t []byte) string {
	i := 0
	if i < len(t) && (t[i] == '-' || t[i] == '+') {
		i++
	}
	digits, significant, zeros := 0, 0, 0 // zeros: those at the end of significant
	exp := 0                              // of the first significant digit
	point := false
	for ; i < len(t); i++ {
		switch c := t[i]; {
		case c == '.' && !point:
			point = true
			continue
		case c-'0' > 9:
			goto exponent
		case c == '0' && significant == 0:
			digits++
			if point {
				exp--
			}
			continue
		case c == '0':
			zeros++
		default:
			zeros = 0
		}
		digits++
		significant++
		if !point && significant > 1 {
			exp++
		}
		if point && significant == 1 {
			exp--
		}
	}
exponent:
	if digits == 0 {
		return "invalid number"
	}
	if i < len(t) {
		if t[i]|0x20 != 'e' {
			return "invalid number"
		}
		i++
		neg := false
		if i < len(t) && (t[i] == '-' || t[i] == '+') {
			neg = t[i] == '-'
			i++
		}
		if i == len(t) {
			return "invalid number"
		}
		e := 0
		for ; i < len(t); i++ {
			if t[i]-'0' > 9 {
				return "invalid number"
			}
			if e = e*10 + int(t[i]-'0'); e > 1<<20 {
				e = 1 << 20
			}
		}
		if neg {
			e = -e
		}
		exp += e
	}
	switch {
	case significant == 0:
		return ""
	case significant-zeros > 38:
		return "number of more than 38 significant digits"
	case exp > 125:
		return "number larger than 9.99E+125"
	case exp < -130:
		return "number smaller than 1E-130"
	}
	return ""
}
