package opensearch

import (
	"context"
	"errors"

	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/effect/document"
)

// Sink writes documents. It is safe for concurrent use. It has no goroutine and
// needs no Close.
type Sink struct {
	client *Client
	opt    Options
	path   string // of bulk requests
	gzip   int    // larger bodies are compressed

	waiting *budget
	order   order
	limit   *limit
	recent  recent
	batch   *batch.Batcher[*write]
	counts  series
}

// New returns a Sink, or an error that names every invalid option. It makes no
// request.
func New(c *Client, o Options) (*Sink, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if c == nil {
		return nil, errors.New("opensearch: New needs a Client; Connect returns one")
	}
	o = o.withDefaults()
	s := &Sink{client: c, opt: o, path: bulkPath, gzip: o.GzipAbove, waiting: newBudget(o.WaitBytes), limit: newLimit(o.InFlight), counts: newSeries(o.Metrics)}
	if o.RequireAlias {
		s.path = "/_bulk?require_alias=true&" + filter
	}
	if s.gzip == 0 && !c.bare {
		s.gzip = 64 << 10
	}
	s.batch = batch.New(s.commit, sizeOf, batch.Options{
		MaxItems: o.MaxItems,
		MaxBytes: o.MaxBytes,
		InFlight: o.InFlight,
		Linger:   o.Linger,
		Timeout:  o.Timeout,
		Metrics:  o.Metrics,
		Sink:     o.Sink,
		Untraced: true, // see trace
	})
	s.limit.changed = s.batch.SetInFlight
	return s, nil
}

// Write returns nil once the document is written or deleted. It also returns nil
// if the index has a newer state, or no document to delete. Concurrent calls share
// requests. Writes of one document keep the order of the calls. If ctx ends before
// the write is sent, the write is withdrawn; afterwards Write waits for the real
// result.
//
// Its errors are *[document.Error], inside sluice.Permanent if no retry can
// succeed.
func (s *Sink) Write(ctx context.Context, op document.Op) error {
	one := &struct { // one allocation
		call
		op [1]document.Op
		w  [1]write
		ws [1]*write
	}{op: [1]document.Op{op}}
	one.call = call{sink: s, ws: one.ws[:0]}
	one.writeAll(ctx, one.op[:], one.w[:])
	return one.w[0].err
}

// WriteAll is Write for several operations. It returns one error per operation, or
// nil when all are done. Requests run concurrently, so only operations of one
// document are in order: they go together, or not at all.
func (s *Sink) WriteAll(ctx context.Context, ops []document.Op) []error {
	if len(ops) == 0 {
		return nil
	}
	all := make([]write, len(ops))
	c := &call{sink: s, ws: make([]*write, 0, len(ops))}
	if !c.writeAll(ctx, ops, all) {
		return nil
	}
	errs := make([]error, len(ops))
	for i := range all {
		errs[i] = all[i].err
	}
	return errs
}

// sizeOf is the approximate size of a write in a request.
func sizeOf(w *write) int {
	return len(w.op.Body) + len(w.op.ID) + len(w.op.Index) + len(w.op.Routing) + overhead
}

// chunks divides ws into requests.
func (s *Sink) chunks(ws []*write) [][]*write {
	var chunks [][]*write
	from, bytes := 0, 0
	for i, w := range ws {
		n := sizeOf(w)
		if i > from && (bytes+n > s.opt.MaxBytes || i-from == s.opt.MaxItems) {
			chunks = append(chunks, ws[from:i])
			from, bytes = i, 0
		}
		bytes += n
	}
	return append(chunks, ws[from:])
}
