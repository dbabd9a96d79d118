package streamtest

import (
	"math"
	"time"
)

func (s *Service) getRecords(c *call) ([]byte, *apiError) {
	limit, err := c.limit(s.limits.PageRecords, 1000)
	if err != nil {
		return nil, err
	}
	if c.it.arn == "" {
		return nil, invalid("Invalid ShardIterator")
	}
	sh, err := s.readable(c)
	if err != nil {
		return nil, err
	}
	if !sh.reads.take(c.now, s.limits.ReadsPerShard) {
		return nil, &apiError{code: "LimitExceededException", message: "Rate of reads exceeds the limit of shard " + sh.id}
	}
	switch {
	case c.it.at > len(sh.records):
		return nil, invalid("Invalid ShardIterator")
	case c.now.Sub(c.it.issued) >= s.limits.IteratorLife:
		return nil, expiredIterator(c.now.Sub(c.it.issued))
	case c.it.at < sh.trimmed:
		return nil, trimmedAccess(sh)
	}
	if n := c.do.records; n > 0 {
		limit = min(limit, n)
	}
	page := sh.page(c.it.at, limit, s.limits.PageBytes)
	if c.do.empty {
		page = nil
	}
	c.note.Records = len(page)
	next := c.it
	next.at, next.issued = c.it.at+len(page), c.now
	if sh.open() || next.at < len(sh.records) || c.do.empty {
		return encodePage(page, next.String()), nil
	}
	return encodePage(page, ""), nil
}

func expiredIterator(age time.Duration) *apiError {
	return &apiError{code: "ExpiredIteratorException", message: "The shard iterator was made " + age.Round(time.Millisecond).String() + " ago and has expired"}
}

// page returns the records from an ordinal on, at least one if it exists.
func (sh *shard) page(from, limit, bytes int) []record {
	page := sh.records[from:]
	size := 0
	for i := range page {
		size += page[i].size
		if i == limit || i > 0 && size > bytes {
			return page[:i]
		}
	}
	return page
}

// encodePage joins records, which were encoded when they were written.
func encodePage(page []record, next string) []byte {
	const head, tail = `{"Records":[`, `],"NextShardIterator":"`
	n := len(head) + len(tail) + len(next) + 2
	for i := range page {
		n += len(page[i].json) + 1
	}
	b := append(make([]byte, 0, min(n, math.MaxInt32)), head...)
	for i := range page {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, page[i].json...)
	}
	if next == "" {
		return append(b, "]}"...)
	}
	b = append(append(b, tail...), next...)
	return append(b, `"}`...)
}
