package opensearch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/backoff"
)

// commit writes ws, which are first in their lanes, with the writes that joined
// them. Temporary refusals of single operations stay open: their callers retry
// them, and no other write waits for that. commit itself repeats a request that
// failed as a whole.
func (s *Sink) commit(ctx context.Context, ws []*write) []error {
	s.order.join(ws)
	ctx, traced := s.trace(ctx, ws)
	defer traced()
	now := time.Now()
	for _, w := range ws {
		w.open = false
		if w.begun.IsZero() {
			w.begun = now
		}
	}
	c := committing{sink: s, results: make([]result, len(ws))}
	todo := append(make([]*write, 0, len(ws)), ws...)
	for tries := 1; ; {
		c.again, c.wait, c.after = nil, false, 0
		c.request(ctx, todo)
		todo = c.again
		if len(todo) == 0 {
			break
		}
		if !c.wait {
			continue // the current write of its document has not been tried
		}
		if c.heard {
			for _, w := range todo {
				w.open = true
			}
			break
		}
		end := s.limit.pause()
		paused := s.pause(ctx, tries, c.after)
		end()
		if !paused {
			giveUp(todo)
			break
		}
		tries++
		s.retried(todo)
	}
	var errs []error
	for i, w := range ws {
		if w.err != nil && !w.open {
			if errs == nil {
				errs = make([]error, len(ws))
			}
			errs[i] = w.err
		}
	}
	return errs
}

// committing is the state of one commit.
type committing struct {
	sink    *Sink
	results []result
	again   []*write      // writes to repeat
	wait    bool          // after a pause
	after   time.Duration // least length of the pause
	heard   bool          // the cluster has answered for single operations
}

// request sends ws once. If the request is refused for its size or its content, it
// searches in halves.
func (c *committing) request(ctx context.Context, ws []*write) {
	ws, body := c.encode(ws)
	defer body.release()
	if len(ws) == 0 {
		return
	}
	results := c.results[:len(ws)]
	err := c.sink.try(ctx, ws, body, results)
	if err == nil {
		c.heard = true
		var refused []*write
		for i, w := range ws {
			r := &results[i]
			now := w.current()
			if r.status == 200 || r.status == 201 {
				c.sink.recent.wrote(now, r.revision)
				if w.line == nil { // the usual case
					w.err = nil
					continue
				}
			}
			f := failure{said: r.said}
			o := judge(now.sent(), r.said)
			if o == conflict && now.op.Fence == document.Exact {
				refused = append(refused, w)
				continue
			}
			c.settle(w, o, f)
		}
		c.compare(ctx, refused)
		return
	}
	o := judgeRequest(err)
	if (o == tooLarge || o == spoiled) && len(ws) > 1 {
		half := len(ws) / 2
		c.request(ctx, ws[:half])
		c.request(ctx, ws[half:])
		return
	}
	f := failureOf(ctx, err)
	for _, w := range ws {
		c.settle(w, o, f)
	}
}

// encode returns the body of a request, held, and its writes. It settles and omits
// impossible writes.
func (c *committing) encode(ws []*write) ([]*write, *buffer) {
	size := 0
	for _, w := range ws {
		size += sizeOf(w.current()) + 2
	}
	body := newBuffer()
	e := encoder{b: slices.Grow(body.b, size)}
	for i := 0; i < len(ws); i++ {
		now := ws[i].current()
		c.sink.recent.look(now)
		if err := e.add(now.sent()); err != nil {
			w := ws[i]
			ws = slices.Delete(slices.Clone(ws), i, i+1)
			i--
			c.settle(w, never, failure{err: err})
		}
	}
	body.b = e.b
	return ws, body
}

// settle applies the outcome of the operation that was sent for w.
func (c *committing) settle(w *write, o outcome, f failure) {
	counts := &c.sink.counts
	now := w.current()
	switch o {
	case done, conflict, absent:
		if o == conflict {
			ofDocument(counts.conflicts, now.op)
		}
		w.each(func(x *write) {
			x.err = nil
			if o == conflict && x.op.Refused != nil {
				x.op.Refused(f.refused())
			}
			if x != now {
				ofDocument(counts.superseded, x.op)
			}
		})
	case never, tooLarge, spoiled:
		e := f.of(now.op)
		now.err = permanent(e)
		ofError(counts.rejected, e)
		if w.line != nil && w.line.left > 1 {
			w.line.left-- // the one before it now stands for the rest
			w.failed, w.tries = nil, 0
			c.again = append(c.again, w)
		}
	case refused:
		w.each(func(x *write) { x.err = f.of(x.op) })
	case passing, busy:
		if f.status == 0 && f.err == nil {
			f.err = errors.New("the answer has no result for it")
		}
		w.tries++
		if w.failed == nil || !f.late { // else the earlier failure says more
			w.failed = &f
		}
		c.again = append(c.again, w)
		c.wait, c.after = true, max(c.after, f.after)
	}
}

// retried counts the retries of ws, and notifies their callers.
func (s *Sink) retried(ws []*write) {
	for _, w := range ws {
		if w.failed == nil {
			continue
		}
		if s.counts.retried != nil {
			ofError(s.counts.retried, w.failed.of(w.current().op))
		}
		w.each(func(x *write) {
			if l := x.call.told; l != nil {
				l.Retrying(w.failed.of(x.op))
			}
		})
	}
}

// giveUp settles writes that failed in time: each caller gets its own error.
func giveUp(ws []*write) {
	for _, w := range ws {
		var f failure
		if w.failed != nil {
			f = *w.failed
		}
		switch {
		case w.failed == nil:
			f.err = errors.New("not sent: a later write of the document can never succeed, and the time ran out for this one")
		case f.err != nil:
			f.err = fmt.Errorf("given up after %d tries: %w", w.tries, f.err)
		default:
			f.err = fmt.Errorf("given up after %d tries", w.tries)
		}
		w.each(func(x *write) { x.err = f.marked(f.of(x.op)) })
	}
}

// pause waits before try n+1, by backoff with full jitter, and at least as long as
// the cluster asked for. It returns false at once if ctx would end before.
func (s *Sink) pause(ctx context.Context, n int, least time.Duration) bool {
	return backoff.Within(ctx, max(backoff.Full(s.opt.Backoff, s.opt.Backoff<<10, n), least))
}
