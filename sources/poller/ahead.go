package poller

import (
	"bytes"
	"context"
	"runtime"
	"time"
)

// call is one GetRecords call.
type call struct {
	iterator   string
	start, end time.Time
	body       []byte
	err        error

	reserved int64 // of the quota, for the page of a call made ahead
	cancel   context.CancelFunc
	done     chan struct{} // closed when it has been answered
}

// callAhead makes the call behind a full page before that is decoded and
// handed over, unless the quota would make it wait. Its answer counts only if
// iterator is the reader's in the end.
func (r *reader) callAhead(ctx context.Context, iterator string) {
	if iterator == "" {
		return
	}
	reserved, ok := r.quota.AdmitAhead()
	if !ok {
		return
	}
	r.ahead = r.begin(ctx, iterator)
	r.ahead.reserved = reserved
	runtime.Gosched() // it is sent before the decoding begins, also when no other processor is free
}

// called reports whether the next call was made ahead.
func (r *reader) called() bool {
	if r.ahead != nil && r.ahead.iterator != r.iterator {
		r.drop()
	}
	return r.ahead != nil
}

// get makes the GetRecords call for the reader's iterator, or takes the answer
// of the one that was made ahead.
func (r *reader) get(ctx context.Context) *call {
	c := r.ahead
	if r.called() {
		r.quota.Adopt(c.reserved)
		r.ahead = nil
	} else {
		c = r.begin(ctx, r.iterator)
	}
	<-c.done // soon after ctx ended: it has its own from it
	c.cancel()
	return c
}

func (r *reader) begin(ctx context.Context, iterator string) *call {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	limit := r.pageLimit()
	c := &call{iterator: iterator, start: time.Now(), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer func() {
			c.end = time.Now()
			if v := recover(); v != nil {
				c.err = panicked(v)
			}
		}()
		c.body, c.err = r.api.GetRecords(ctx, iterator, limit)
	}()
	return c
}

// drop gives up the call that was made ahead, if there is one, and returns
// when it has ended.
func (r *reader) drop() {
	if c := r.ahead; c != nil {
		c.cancel()
		<-c.done
		r.quota.Free(c.reserved)
		r.ahead = nil
	}
}

// nextIterator finds the next iterator in a body that is not decoded yet: the
// first or the last member of the answer. It returns "" when there is a doubt.
//
// Quotes in an item's text are escaped, and its attributes are objects: the
// name with a text behind it is nowhere but in the envelope.
func nextIterator(body []byte) string {
	const name, most = `"NextShardIterator":"`, 4 << 10
	value, first := bytes.CutPrefix(body, []byte("{"+name))
	if !first {
		tail := body[max(0, len(body)-most):]
		i := bytes.LastIndex(tail, []byte(name))
		if i < 0 {
			return ""
		}
		value = tail[i+len(name):]
	}
	end := bytes.IndexAny(value[:min(len(value), most)], `"\`)
	if end < 0 || value[end] != '"' {
		return ""
	}
	return string(value[:end])
}
