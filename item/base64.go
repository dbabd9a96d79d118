package item

// base64Value holds the value of each character of standard base64, and 0xff
// for every other byte.
var base64Value = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		t[c] = byte(i)
	}
	return
}()

// checkBase64 describes the mistake in the text of a B. A B is standard base64
// with padding, without line breaks, and with zero in its unused bits.
func checkBase64(t []byte) string {
	const msg = "invalid base64"
	if len(t)%4 != 0 {
		return msg
	}
	if len(t) == 0 {
		return ""
	}
	last := t[len(t)-4:]
	t = t[:len(t)-4]
	var bad byte
	for ; len(t) >= 4; t = t[4:] {
		bad |= base64Value[t[0]] | base64Value[t[1]] | base64Value[t[2]] | base64Value[t[3]]
	}
	v0, v1, v2, v3 := base64Value[last[0]], base64Value[last[1]], base64Value[last[2]], base64Value[last[3]]
	unused := byte(0)
	switch {
	case last[3] != '=':
	case last[2] != '=':
		v3, unused = 0, v2&3
	default:
		v2, v3, unused = 0, 0, v1&15
	}
	if (bad|v0|v1|v2|v3)&0xc0 != 0 || unused != 0 {
		return msg
	}
	return ""
}
