package sluice

import (
	"time"

	"github.com/sluicehq/sluice/internal/jsonscan"
)

// parseTime reads a JSON value as a time: a number of seconds since 1970 in
// any notation, the same in a string, or an ISO 8601 string. Numbers too large
// for seconds are taken for milli-, micro- or nanoseconds. null is the zero
// time.
func parseTime(raw []byte) (t time.Time, ok bool) {
	text := raw
	switch raw[0] {
	case 'n':
		return time.Time{}, true
	case '"':
		text = jsonscan.AppendUnquoted(nil, raw)
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
			if t, err := time.Parse(layout, string(text)); err == nil {
				return t.UTC(), true
			}
		}
	}
	if end, msg := jsonscan.Number(text, 0); msg == "" && end == len(text) {
		return timeOf(text)
	}
	return time.Time{}, false
}

// timeOf turns the text of a JSON number into a time without rounding, down to
// nanoseconds.
func timeOf(t []byte) (time.Time, bool) {
	n, _ := jsonscan.ParseDecimal(t)
	if n.Negative {
		return time.Time{}, false
	}
	var buf [40]byte
	digits, point := n.AppendDigits(buf[:0], t), n.Exp
	if n.Digits == 0 {
		return time.Unix(0, 0).UTC(), true
	}
	switch { // 11 digits of seconds reach beyond the year 5000
	case point <= 11:
	case point <= 14:
		point -= 3
	case point <= 17:
		point -= 6
	case point <= 20:
		point -= 9
	default:
		return time.Time{}, false
	}
	digit := func(i int) int64 {
		if i < 0 || i >= len(digits) {
			return 0
		}
		return int64(digits[i] - '0')
	}
	var sec, nsec int64
	for i := range max(point, 0) {
		sec = sec*10 + digit(i)
	}
	for i := range 9 {
		nsec = nsec*10 + digit(point+i)
	}
	return time.Unix(sec, nsec).UTC(), true
}
