package opensearch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/document"
)

// bulkPath asks for the answer without what nobody reads.
const bulkPath = "/_bulk?filter_path=took,errors,items.*._index,items.*._id,items.*.status,items.*.error.type,items.*.error.reason"

const maxAnswer = 256 << 20 // bytes; a reason may quote a document

// try makes one request of what stands for each of ws, and fills results. An
// error is of the whole request.
func (s *Sink) try(ctx context.Context, ws []*write, results []result) error {
	if err := s.limit.enter(ctx); err != nil {
		return fmt.Errorf("opensearch: not sent: as many requests run as the cluster bears: %w", err)
	}
	start := time.Now()
	answered := false
	busyItems := false
	r := Request{Items: len(ws)}
	// Deferred, because what follows could panic.
	defer func() {
		if !answered && r.Err == nil {
			r.Err = errEnded
		}
		r.Took = time.Since(start)
		r.Limit = s.limit.leave(start, busyItems || overloaded(r.Err))
		if hook := s.opt.Hooks.Requested; hook != nil {
			hook(r)
		}
	}()
	r.Bytes, r.Err = s.post(ctx, ws, results)
	answered = true
	for i := range results {
		if r.Err == nil && results[i].status != 200 && results[i].status != 201 && judge(ws[i].current().op, &results[i]) == busy {
			busyItems = true
			break
		}
	}
	return r.Err
}

// post encodes, sends and reads the answer. It returns the bytes of the body.
func (s *Sink) post(ctx context.Context, ws []*write, results []result) (int, error) {
	body, encoding, err := s.encode(ws)
	if err != nil {
		return 0, err
	}
	defer body.release()
	// One whose connection has died silently leaves time for others.
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout/3)
	defer cancel()
	n := len(body.b)
	a, err := s.client.do(ctx, request{
		method: "POST", path: s.path, contentType: "application/x-ndjson", encoding: encoding, identity: true,
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

// encode returns the body of a request, held, and its encoding.
func (s *Sink) encode(ws []*write) (*buffer, string, error) {
	body := newBuffer()
	e := encoder{b: body.b}
	for _, w := range ws {
		w = w.current()
		e.add(w.op, w.body)
	}
	body.b = e.b
	if s.gzip <= 0 || len(body.b) <= s.gzip {
		return body, "", nil
	}
	defer body.release()
	small, err := body.gzipped()
	if err != nil {
		return nil, "", errors.New("opensearch: the request cannot be compressed: " + err.Error())
	}
	return small, "gzip", nil
}
