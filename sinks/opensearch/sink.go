package opensearch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/document"
	"github.com/sluicehq/sluice/internal/quorum"
)

// Sink writes documents. It is safe for concurrent use. It has no goroutine
// and nothing to close.
type Sink struct {
	client *Client
	opt    Options
	path   string // of bulk requests
	gzip   int    // bodies of more bytes are compressed

	waiting budget
	order   order
	limit   *limit
	recent  recent
	batch   *batch.Batcher[*write]
}

// New returns a Sink, or an error that names every option that is wrong. It
// makes no request.
func New(c *Client, o Options) (*Sink, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if c == nil {
		return nil, errors.New("opensearch: New needs a Client; Connect returns one")
	}
	o = o.withDefaults()
	s := &Sink{client: c, opt: o, path: bulkPath, gzip: o.GzipAbove, waiting: budget{max: o.WaitBytes}, limit: newLimit(o.InFlight)}
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
		Hooks:    batch.Hooks{Committed: o.Hooks.Committed},
	})
	s.limit.changed = s.batch.SetInFlight
	return s, nil
}

// Write returns nil once the document is written or deleted, or something newer
// is there, or nothing is there to delete. It shares requests with what others
// write meanwhile; writes of one document follow one another in the order of
// the calls. When ctx ends before the write is sent, it is withdrawn; after
// that Write waits for the true result.
//
// Its errors are *[document.Error], inside sluice.Permanent when no other try
// can succeed.
func (s *Sink) Write(ctx context.Context, op document.Op) error {
	one := &struct { // in one piece of memory
		op [1]document.Op
		w  [1]write
		ws [1]*write
	}{op: [1]document.Op{op}}
	s.writeAll(ctx, one.op[:], one.w[:], one.ws[:0])
	return one.w[0].err
}

// WriteAll is Write for several; one error per operation, or nil when all are
// done. Requests go several at a time, so that only operations of one document
// are in order. After one of a document without a Fence has failed for the
// moment, later ones of that document in the call may fail unsent: written
// before it, they would be overwritten by it when it is tried again.
func (s *Sink) WriteAll(ctx context.Context, ops []document.Op) []error {
	if len(ops) == 0 {
		return nil
	}
	all := make([]write, len(ops))
	if !s.writeAll(ctx, ops, all, make([]*write, 0, len(ops))) {
		return nil
	}
	errs := make([]error, len(ops))
	for i := range all {
		errs[i] = all[i].err
	}
	return errs
}

// writeAll sets the errors of all, which are of ops, and reports whether there
// are some. ws is empty, with room for all.
func (s *Sink) writeAll(ctx context.Context, ops []document.Op, all []write, ws []*write) (failed bool) {
	m := many{sink: s, ws: ws}
	bytes := 0
	for i := range all {
		w := &all[i]
		w.op = &ops[i]
		if err := check(w.op); err != nil {
			e := refuse(w.op, err)
			w.err = permanent(e)
			m.failed = true
			if hook := s.opt.Hooks.Rejected; hook != nil {
				hook(e)
			}
			continue
		}
		w.lane = laneOf(w.op)
		if n := sizeOf(w); len(m.ws) > 0 && bytes+n > s.opt.WaitBytes/2 {
			m.run(ctx, bytes)
			m.ws, bytes = make([]*write, 0, len(ops)-i), 0
		}
		bytes += sizeOf(w)
		m.ws = append(m.ws, w)
	}
	if len(m.ws) > 0 {
		m.run(ctx, bytes)
	}
	return m.failed
}

// sizeOf is about what a write takes in a request.
func sizeOf(w *write) int {
	return len(w.op.Body) + len(w.op.ID) + len(w.op.Index) + len(w.op.Routing) + overhead
}

func notSent(ctx context.Context) error { return fmt.Errorf("not sent: %w", context.Cause(ctx)) }

// many is one call of WriteAll. It works off its operations in parts, as many
// at a time as may wait.
type many struct {
	sink   *Sink
	ws     []*write // of this part
	failed bool
	behind map[uint64]error // by lane: what later writes without a fence must not overtake
}

// run writes one part.
func (m *many) run(ctx context.Context, bytes int) {
	s := m.sink
	taken, err := s.waiting.take(ctx, bytes)
	if err != nil {
		err = fmt.Errorf("not sent: %d bytes wait already, as many as may: %w", s.opt.WaitBytes, err)
		m.end(m.ws, func(w *write) { w.err = err })
		return
	}
	defer s.waiting.give(taken)
	c := &call{ws: m.ws}
	for _, w := range c.ws {
		w.call = c
	}
	s.order.enter(c)
	returned := false
	defer func() {
		if !returned {
			s.order.abandon(c, errEnded)
		}
	}()
	for {
		ready := s.order.ready(ctx, c)
		if len(ready) == 0 {
			break
		}
		m.send(ctx, ready)
	}
	returned = true
	m.end(m.ws, func(*write) {})
}

var errEnded = errors.New("its goroutine ended; whether it was written is not known")

// end has each error say which operation it is of.
func (m *many) end(ws []*write, set func(*write)) {
	for _, w := range ws {
		set(w)
		if w.err == nil {
			continue
		}
		m.failed = true
		var told *document.Error
		if !errors.As(w.err, &told) {
			w.err = refuse(w.op, w.err)
		}
		if w.op.Fence == document.NoFence && !sluice.IsPermanent(w.err) {
			if m.behind == nil {
				m.behind = map[uint64]error{}
			}
			m.behind[w.lane] = w.err
		}
	}
}

// send puts writes that are the first of their lanes into batches, several at a
// time, and returns when all have their results.
func (m *many) send(ctx context.Context, ws []*write) {
	s := m.sink
	ws = m.withoutBehind(ws)
	chunks := s.chunks(ws)
	if len(chunks) == 1 {
		m.sendChunk(ctx, ws, s.batch.DoAll)
		return
	}
	var next atomic.Int64
	work := func() {
		for n := int(next.Add(1)) - 1; n < len(chunks); n = int(next.Add(1)) - 1 {
			m.sendChunk(ctx, chunks[n], s.batch.DoAllNow)
		}
	}
	// A panic, which can be one of a hook, is for the caller's goroutine, after
	// all others have ended.
	var wg sync.WaitGroup
	var panicked atomic.Pointer[string]
	defer func() {
		wg.Wait()
		if p := panicked.Load(); p != nil {
			panic(*p)
		}
	}()
	for range min(len(chunks), s.opt.InFlight) - 1 {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					text := fmt.Sprintf("%v\n%s", p, debug.Stack())
					panicked.Store(&text)
				}
			}()
			work()
		})
	}
	work()
}

// sendChunk writes what fits into one request by do, and again what a commit
// leaves open, until the Timeout of its first one has passed. Once it is sent, ctx
// counts for its deadline alone.
func (m *many) sendChunk(ctx context.Context, ws []*write, do func(context.Context, []*write) []error) {
	s := m.sink
	for _, w := range ws {
		w.err = errEnded
	}
	defer func() { s.order.leave(ws) }()
	ws = m.finish(ws, do(ctx, ws), 0)
	if len(ws) == 0 {
		return
	}
	end := slices.MinFunc(ws, func(a, b *write) int { return a.begun.Compare(b.begun) }).begun.Add(s.opt.Timeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
		end = deadline
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	defer cancel()
	member := quorum.From(ctx)
	for tries := 1; len(ws) > 0; tries++ {
		member.Park()
		again := s.pause(ctx, tries, 0)
		quorum.Unpark([]*quorum.Member{member})
		if !again {
			giveUp(ws, tries)
			return
		}
		s.retried(ws)
		ws = m.finish(ws, s.batch.DoAll(ctx, ws), tries)
	}
}

// finish takes what DoAll has answered. Those that have their results leave
// their lanes, the others are returned.
func (m *many) finish(ws []*write, errs []error, tries int) []*write {
	var open []*write
	for i, w := range ws {
		var err error
		if errs != nil {
			err = errs[i]
		}
		switch {
		case w.open && err == nil:
			open = append(open, w)
		case w.open: // the time ran out before another commit took it
			w.open = false
			giveUp([]*write{w}, tries)
		default:
			w.err = err
		}
	}
	if len(open) > 0 {
		ws = slices.DeleteFunc(slices.Clone(ws), func(w *write) bool { return w.open })
	}
	m.sink.order.leave(ws)
	return open
}

// chunks divides ws as requests are.
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

// withoutBehind fails the writes that would be overwritten by an earlier one
// of the call, when that is tried again.
func (m *many) withoutBehind(ws []*write) []*write {
	if m.behind == nil {
		return ws
	}
	var failed []*write
	ws = slices.DeleteFunc(slices.Clone(ws), func(w *write) bool {
		err := m.behind[w.lane]
		if err == nil || w.op.Fence != document.NoFence {
			return false
		}
		w.err = fmt.Errorf("not sent: an earlier write of the same document failed: %w", err)
		failed = append(failed, w)
		return true
	})
	m.sink.order.leave(failed)
	return ws
}
