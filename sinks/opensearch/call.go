package opensearch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/parallel"
	"github.com/sluicehq/sluice/internal/quorum"
	"github.com/sluicehq/sluice/internal/retrying"
)

// call is one call of Write or WriteAll.
type call struct {
	sink  *Sink
	ctx   context.Context   // of the handler; nil if it is not traced
	told  retrying.Listener // learns of failed tries; may be nil
	ws    []*write
	open  int           // waiting or joined writes of ws; guarded by order.mu
	ready []*write      // first in their lanes, to be batched; guarded by order.mu
	wake  chan struct{} // nil if none had to wait
}

// errEnded is the error of a write before its result.
var errEnded = errors.New("its goroutine ended; whether it was written is not known")

// writeAll sets the errors of all, the writes of ops, and reports whether any
// failed.
func (c *call) writeAll(ctx context.Context, ops []document.Op, all []write) (failed bool) {
	s := c.sink
	bytes := 0
	for i := range all {
		w := &all[i]
		w.op, w.call = &ops[i], c
		if err := check(w.op); err != nil {
			e := refuse(w.op, err)
			w.err = permanent(e)
			ofError(s.counts.rejected, e)
			continue
		}
		w.lane, w.err = laneOf(w.op), errEnded
		bytes += sizeOf(w)
		c.ws = append(c.ws, w)
	}
	if len(c.ws) > 0 {
		c.run(ctx, bytes)
	}
	for i := range all {
		w := &all[i]
		if w.err == nil {
			continue
		}
		failed = true
		if !errors.As(w.err, new(*document.Error)) { // a document.Error names its operation
			w.err = refuse(w.op, w.err)
		}
	}
	return failed
}

func notSent(ctx context.Context) error { return fmt.Errorf("not sent: %w", context.Cause(ctx)) }

// run writes ws, each when it is first in its lane.
func (c *call) run(ctx context.Context, bytes int) {
	s := c.sink
	c.told, c.ctx = retrying.From(ctx), quorum.Traced(ctx)
	taken, err := s.waiting.take(ctx, bytes)
	if err != nil {
		err = fmt.Errorf("not sent: %d bytes wait already, as many as may: %w", s.opt.WaitBytes, err)
		for _, w := range c.ws {
			w.err = err
		}
		return
	}
	defer s.waiting.give(taken)
	s.order.enter(c)
	defer s.order.abandon(c) // none remain, unless this goroutine ended early
	for {
		ready := s.order.ready(ctx, c)
		if len(ready) == 0 {
			return
		}
		c.send(ctx, ready)
	}
}

// send batches writes that are first in their lanes, several at a time, and
// returns when all have their results.
func (c *call) send(ctx context.Context, ws []*write) {
	s := c.sink
	chunks := s.chunks(ws)
	if len(chunks) == 1 {
		c.sendChunk(ctx, ws, s.batch.DoAll)
		return
	}
	parallel.Do(len(chunks), s.opt.InFlight, func(n int) { c.sendChunk(ctx, chunks[n], s.batch.DoAllNow) })
}

// sendChunk writes the writes of one request by do, and repeats those that a
// commit leaves open, until the Timeout of the first has passed. Once a write is
// sent, only ctx's deadline counts.
func (c *call) sendChunk(ctx context.Context, ws []*write, do func(context.Context, []*write) []error) {
	s := c.sink
	ws = c.finish(ws, do(ctx, ws))
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
			giveUp(ws)
			s.order.leave(ws)
			return
		}
		s.retried(ws)
		ws = c.finish(ws, s.batch.DoAll(ctx, ws))
	}
}

// finish applies the results of DoAll. Finished writes leave their lanes; the
// others are returned.
func (c *call) finish(ws []*write, errs []error) []*write {
	var open []*write
	for i, w := range ws {
		var err error
		if errs != nil {
			err = errs[i]
		}
		switch {
		case w.open && err == nil:
			open = append(open, w)
		case w.open: // no later commit took it in time
			w.open = false
			giveUp([]*write{w})
		default:
			w.err = err
		}
	}
	if len(open) > 0 {
		ws = slices.DeleteFunc(slices.Clone(ws), func(w *write) bool { return w.open })
	}
	c.sink.order.leave(ws)
	return open
}
