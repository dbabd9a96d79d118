// Package retryafter reads the Retry-After header of an HTTP answer.
package retryafter

import (
	"net/http"
	"strconv"
	"time"
)

// Max is the longest wait that Parse returns.
const Max = time.Hour

// Parse parses seconds or a date (RFC 9110, section 10.2.3). It returns 0 for an
// empty or invalid header, or a past time.
func Parse(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(Max/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), Max)
	}
	return 0
}
