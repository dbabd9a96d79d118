package sluice

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Two records whose quotes are wrong must not swallow the good ones between
// them: the page cannot be split.
func TestBadQuotesSwallowNoGoodRecord(t *testing.T) {
	record := func(key string, n int) string {
		return fmt.Sprintf(`{"eventID":"e%d","eventName":"INSERT","eventSource":"aws:dynamodb","dynamodb":{"Keys":{"pk":{"S":"%s"}},"SequenceNumber":"4260000406275508419234%d"}}`, n, key, n)
	}
	for name, c := range map[string]struct {
		keys  []string
		split int // records; 0: it cannot be split
	}{
		"none":          {[]string{"a", "b", "c"}, 3},
		"one":           {[]string{"a", `b"`, "c"}, 0},
		"two in one":    {[]string{"a", `b""`, "c"}, 3},
		"two":           {[]string{`a"`, "b", `c"`}, 0},
		"two neighbors": {[]string{"a", `b"`, `c"`}, 0},
	} {
		var all []string
		for i, k := range c.keys {
			all = append(all, record(k, i+1))
		}
		pg, err := DecodeGetRecords([]byte(`{"Records":[`+strings.Join(all, ",")+`],"NextShardIterator":"n"}`), Source{})
		if _, ok := errors.AsType[*EnvelopeError](err); len(pg.Records) != c.split || ok == (c.split > 0) {
			t.Errorf("%s: %d records, %v; want %d", name, len(pg.Records), err, c.split)
		}
	}
}
