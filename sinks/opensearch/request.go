package opensearch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/effect/document"
)

// A bulk request asks for a response without unused parts.
const (
	bulkPath  = "/_bulk?" + filter
	filter    = "filter_path=took,errors,items.*._index,items.*._id,items.*.status,items.*.error.type,items.*.error.reason"
	revisions = ",items.*._seq_no,items.*._primary_term" // for the next Exact write of a document
)

const maxAnswer = 256 << 20 // bytes; a reason may quote a document

// try makes one request for the operations that stand for ws, and fills results.
// An error concerns the whole request.
func (s *Sink) try(ctx context.Context, ws []*write, body *buffer, results []result) (err error) {
	if err := s.limit.enter(ctx); err != nil {
		return fmt.Errorf("opensearch: not sent: as many requests run as the cluster bears: %w", err)
	}
	start := time.Now()
	answered := false
	busyItems := false
	sent := 0
	// Deferred, because the following code may panic.
	defer func() {
		if !answered && err == nil {
			err = errEnded
		}
		s.limit.leave(start, busyItems || overloaded(err))
		s.counts.requested(sent, time.Since(start), err)
	}()
	sent, err = s.post(ctx, ws, body, results)
	answered = true
	for i := range results {
		if err == nil && results[i].refusal() == busy {
			busyItems = true
			break
		}
	}
	return err
}

// post sends the body of a request and reads the response. It returns the number
// of bytes sent.
func (s *Sink) post(ctx context.Context, ws []*write, body *buffer, results []result) (int, error) {
	encoding := ""
	if s.gzip > 0 && len(body.b) > s.gzip {
		small, err := body.gzipped()
		if err != nil {
			return 0, fmt.Errorf("opensearch: the request cannot be compressed: %w", err)
		}
		defer small.release()
		body, encoding = small, "gzip"
	}
	// A silently dead connection must leave time for retries.
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout/3)
	defer cancel()
	n := len(body.b)
	path := s.path
	if slices.ContainsFunc(ws, func(w *write) bool { return w.op.Fence == document.Exact }) {
		path += revisions
	}
	a, err := s.client.do(ctx, request{
		method: "POST", path: path, contentType: "application/x-ndjson", encoding: encoding, identity: true,
		length: int64(n), body: body.reader,
	})
	if err != nil {
		return n, err
	}
	defer a.body.Close()
	if a.status >= 300 {
		return n, a.failure()
	}
	answer := newBuffer()
	defer answer.release()
	if err := answer.readAll(a.body, maxAnswer); err != nil {
		return n, a.wrap(fmt.Errorf("the answer cannot be read: %w", err))
	}
	if err := parseAnswer(answer.b, func(i int) *document.Op { return ws[i].current().op }, results); err != nil {
		return n, a.wrap(fmt.Errorf("%w; what was written is not known", err))
	}
	return n, nil
}
