package item

import "unicode/utf8"

// AppendText appends the plain text of a value that can be a key: the text of an
// S, the base64 of a B, and an N without exponent and redundant zeros (1, 1.0 and
// 1E0 are all 1). ok is false for other kinds.
func (v Value) AppendText(dst []byte) (text []byte, ok bool) {
	switch v.kind {
	case S, B:
		return append(dst, textBytes(v.raw)...), true
	case N:
		t := textBytes(v.raw)
		if len(t) > 0 && t[0]-'1' < 9 && len(t) <= 38 && onlyDigits(t) {
			return append(dst, t...), true
		}
		return appendDecimal(dst, t), true
	}
	return dst, false
}

func onlyDigits(t []byte) bool {
	for _, c := range t {
		if c-'0' > 9 {
			return false
		}
	}
	return true
}

// AppendString appends text as a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendString[T string | []byte](dst []byte, text T) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0 // start of the unescaped part
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, text[from:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, `\n`...)
			case '\r':
				dst = append(dst, `\r`...)
			case '\t':
				dst = append(dst, `\t`...)
			default:
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))]))
		if r == utf8.RuneError && n == 1 {
			dst = append(append(dst, text[from:i]...), "\uFFFD"...)
			from = i + 1
		}
		i += n
	}
	return append(append(dst, text[from:]...), '"')
}
