package projection

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/item"
)

// timeForms are forms of ISO 8601, including RFC 3339, with a time of day. With
// each, parsing accepts a fraction of a second after a point or a comma.
var timeForms = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07",
	"2006-01-02T15:04:05", "2006-01-02T15:04Z07:00",
	"20060102T150405Z0700", "20060102T150405Z07", "20060102T150405",
}

// parseTime parses a time in one of the timeForms; a space or a small letter may
// replace the T. Without a zone it is UTC.
func parseTime(text string) (time.Time, error) {
	upper := []byte(strings.ToUpper(text))
	for _, at := range []int{8, 10} {
		if at < len(upper) && upper[at] == ' ' {
			upper[at] = 'T'
		}
	}
	for _, form := range timeForms {
		if t, err := time.Parse(form, string(upper)); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("want an ISO 8601 time with a time of day, such as 2025-07-04T12:33:21.123Z")
}

// lastTime is the last time whose nanoseconds since 1970 fit into a version, in
// 2262.
var lastTime = time.Unix(0, math.MaxInt64)

// nanosOf parses a time and returns its nanoseconds since 1970.
func nanosOf(value item.Value) (int64, error) {
	t, err := parseTime(value.Str())
	switch {
	case err != nil:
		return 0, err
	case t.Before(time.Unix(0, 0)) || t.After(lastTime):
		return 0, fmt.Errorf("want a time from 1970 to %v", lastTime.UTC().Format(time.DateOnly))
	}
	return t.UnixNano(), nil
}

// epochNanos converts a number of units since 1970 to nanoseconds. It drops
// smaller digits.
func epochNanos(value item.Value, unit time.Duration) (int64, error) {
	text, _ := value.AppendText(nil)
	whole, fraction, _ := strings.Cut(string(text), ".")
	digits := len(strconv.FormatInt(int64(unit), 10)) - 1 // digits of a unit's fraction
	fraction = (fraction + strings.Repeat("0", digits))[:digits]
	n, err := strconv.ParseInt(whole+fraction, 10, 64)
	if err != nil || n < 0 || text[0] == '-' {
		return 0, fmt.Errorf("want a number of %s from 1970 to %v", unitNames[unit], lastTime.UTC().Format(time.DateOnly))
	}
	return n, nil
}

// unitNames are the units that epochNanos takes.
var unitNames = map[time.Duration]string{time.Second: "seconds", time.Millisecond: "milliseconds", time.Microsecond: "microseconds"}
