package sqs

import (
	"regexp"
	"strconv"
	"sync/atomic"
)

// leastLimit is the lowest MaximumMessageSize that a queue can have.
const leastLimit = 1024

// tooLong are SQS's words for a message or a request over the limit: "Message
// must be shorter than 262144 bytes", "Batch requests cannot be longer than 262144
// bytes".
var tooLong = regexp.MustCompile(`\b(?:shorter|longer) than (\d+) bytes`)

// limitIn returns the limit that a refusal names; 0 when it names none.
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

// lower sets a limit to n, if that is one and is less.
func lower(limit *atomic.Int64, n int64) {
	for {
		old := limit.Load()
		if n == 0 || n >= old || limit.CompareAndSwap(old, n) {
			return
		}
	}
}

// fitting cuts entries into requests that are within the limit that is known by
// now. An entry over the limit has a request of its own.
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
