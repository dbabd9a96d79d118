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

	reserved int64 // from the quota, for the page of a call made ahead
	cancel   context.CancelFunc
	done     chan struct{} // closed when the call has ended
}

// callAhead calls for the page behind a full page, before the reader decodes the
// full page. It does nothing if the quota would make the call wait. The response
// counts only if iterator turns out to be the reader's next.
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
	runtime.Gosched() // sends the call before decoding starts, even on a single processor
}

// called reports whether the next call was made ahead.
func (r *reader) called() bool {
	if r.ahead != nil && r.ahead.iterator != r.iterator {
		r.drop()
	}
	return r.ahead != nil
}

// get makes the GetRecords call for the reader's iterator, or takes the response
// of the call made ahead.
func (r *reader) get(ctx context.Context) *call {
	c := r.ahead
	if r.called() {
		r.quota.Adopt(c.reserved)
		r.ahead = nil
	} else {
		c = r.begin(ctx, r.iterator)
	}
	<-c.done // the call ends soon after ctx
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
		growStack()
		c.body, c.err = r.api.GetRecords(ctx, iterator, limit)
	}()
	return c
}

// growStack makes room for the SDK's deep calls while the stack is short. Else the runtime
// copies the stack several times during each request: a fifth of its CPU time
// (BenchmarkCall).
//
//go:noinline
func growStack() {
	var room [24 << 10]byte
	runtime.KeepAlive(&room)
}

// drop cancels a call made ahead and waits for its end.
func (r *reader) drop() {
	if c := r.ahead; c != nil {
		c.cancel()
		<-c.done
		r.quota.Free(c.reserved)
		r.ahead = nil
	}
}

// nextIterator finds the next iterator in an undecoded body. It looks at the first
// and the last member of the response and returns "" in doubt.
//
// Quotes in an item's text are escaped, and attributes are objects. So the name
// followed by a string occurs only in the envelope.
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
