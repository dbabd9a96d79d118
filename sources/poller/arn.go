package poller

import (
	"strings"
	"time"
)

// A stream's ARN is
// arn:PARTITION:dynamodb:REGION:ACCOUNT:table/TABLE/stream/LABEL. The label is the
// creation time. It distinguishes the streams of one table (its generations).

// tableOf returns the table of a stream ARN, or "".
func tableOf(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" {
		return ""
	}
	res := strings.Split(parts[5], "/")
	if len(res) != 4 || res[0] != "table" || res[2] != "stream" || res[3] == "" {
		return ""
	}
	return res[1]
}

func regionOf(arn string) string {
	if tableOf(arn) == "" {
		return ""
	}
	return strings.SplitN(arn, ":", 6)[3]
}

// sameTable reports whether two streams belong to one table: the same name,
// account and Region.
func sameTable(a, b string) bool {
	a, _, ok := strings.Cut(a, "/stream/")
	b, _, _ = strings.Cut(b, "/stream/")
	return ok && a == b
}

// byAge compares two streams of one table, oldest first. Labels sort by time.
func byAge(a, b string) int {
	_, a, _ = strings.Cut(a, "/stream/")
	_, b, _ = strings.Cut(b, "/stream/")
	return strings.Compare(a, b)
}

// createdAt returns the creation time of a stream, or zero if the label has none.
func createdAt(arn string) time.Time {
	_, label, _ := strings.Cut(arn, "/stream/")
	t, err := time.Parse("2006-01-02T15:04:05", label)
	if err != nil {
		return time.Time{}
	}
	return t
}

// older reports whether stream a was certainly created before stream b.
func older(a, b string) bool {
	at := createdAt(a)
	return !at.IsZero() && at.Before(createdAt(b))
}
