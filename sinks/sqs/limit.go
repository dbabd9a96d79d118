package sqs

import (
	"regexp"
	"strconv"
	"sync/atomic"
)

// leastLimit is the lowest MaximumMessageSize of a queue.
const leastLimit = 1024

// tooLong matches SQS's text for a message or a request over the limit: "Message
// must be shorter than 262144 bytes", "Batch requests cannot be longer than 262144
// bytes".
var tooLong = regexp.MustCompile(`\b(?:shorter|longer) than (\d+) bytes`)

// limitIn returns the limit in a refusal; 0 if it has none.
func limitIn(message string) int64 {
	m := tooLong.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseInt(m[1], 10, 32)
	if err != nil || n < leastLimit {
		return 0
	}
	return n
}

// lower lowers a limit to n, if n is positive and less.
func lower(limit *atomic.Int64, n int64) {
	for {
		old := limit.Load()
		if n == 0 || n >= old || limit.CompareAndSwap(old, n) {
			return
		}
	}
}

// fitting splits entries into requests within the current limit. An entry over the
// limit gets its own request.
func (q *Queue) fitting(entries []*entry) (requests [][]*entry) {
	most := int(q.maxRequest.Load())
	size, begin := 0, 0
	for i, e := range entries {
		if i > begin && size+e.size > most {
			requests = append(requests, entries[begin:i])
			size, begin = 0, i
		}
		size += e.size
	}
	return append(requests, entries[begin:])
}
