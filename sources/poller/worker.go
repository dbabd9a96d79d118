package poller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/sources/poller/internal/checkpoints"
	"github.com/sluicehq/sluice/sources/poller/internal/lineage"
	"github.com/sluicehq/sluice/sources/poller/internal/positions"
	"github.com/sluicehq/sluice/sources/poller/internal/quota"
	"github.com/sluicehq/sluice/state"
)

// worker owns one shard: it claims it, reads it into a flow, and releases it.
type worker struct {
	p      *Poller
	stream *stream
	shard  Shard
	start  lineage.Start // if Gone or Past, the worker only stores the end
	origin lineage.Beginning

	lease    state.Lease
	flow     *flow.Flow
	pos      *positions.Map
	gauge    *gauge
	quota    *quota.Share
	holding  *checkpoints.Holding
	finished atomic.Bool // all is settled and the shard is at its end
	work     meter       // changes and KiB

	skipTo     sluice.Sequence // records up to here were already read
	dropBefore time.Time       // records created before are dropped; zero: none
	behind     *sluice.Gap     // gap whose end is unknown

	stored state.Position
	ahead  positions.Ahead        // of stored
	left   atomic.Pointer[string] // Ahead of the position, once the flow has ended
}

// run owns the shard until it ends, ctx ends, or the lease is lost. After the end
// of ctx it reads no more, and settles and stores what it took within t.
func (w *worker) run(ctx context.Context, t terms) (end End, err error) {
	defer func() {
		if v := recover(); v != nil {
			end, err = EndFailed, panicked(v)
		}
	}()
	stored, err := w.claim(ctx)
	if err != nil {
		return notBegun, err
	}
	running := ctx
	defer func() {
		if end != EndStopped || !handedOver(running, w.stream.name) {
			w.release(t.writes)
		}
	}()
	if stored.Position.Finished {
		return EndFinished, nil
	}
	if w.start.Gone || w.start.Past && stored.Position.Sequence == "" {
		return w.retire(ctx, t.writes, stored)
	}
	owned, lose := context.WithCancelCause(t.flows)
	defer lose(nil)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer w.p.movers.add(w.lease, mover{&w.work, func() {
		stop(errMoved)
		time.AfterFunc(drainWithin, func() { lose(errMoved) })
	}})()
	w.stored, w.ahead = stored.Position, positions.ParseAhead(stored.Position.Ahead)
	after := sluice.Sequence(stored.Position.Sequence)
	w.quota = w.p.quotas.Share(w.shard.Table)
	w.pos = positions.New(after, w.p.clock.now(), w.quota.Free)
	defer w.pos.End()
	o := w.p.o.Flow
	o.Clock = w.p.clock.now
	if w.p.owner.silent > 0 {
		o.Admit = func(ctx context.Context) error { return w.p.owner.admit(ctx, w.lease.Owner) }
	}
	w.flow = flow.Open(owned, w.p.matcher, o)
	defer func() { // after a panic; else Close has returned before
		lose(nil)
		_, _ = w.flow.Close(t.handlers)
	}()
	w.gauge.attach(w.flow, w.pos, w.quota)
	defer w.gauge.detach()
	w.holding = &checkpoints.Holding{
		Lease: w.lease, Stored: stored.Position, Position: w.position,
		Observe: func() { w.p.lagged(w.shard, w.gauge.observe()) },
		Lost:    func() { lose(state.ErrLeaseLost) },
	}
	w.p.checkpoints.Hold(w.holding)
	defer w.p.checkpoints.Drop(w.holding)
	if w.lease.Owner != w.p.owner.now() { // fenced since the claim
		lose(state.ErrLeaseLost)
	}

	w.p.started(w.shard, after)
	end, err = w.read(ctx, owned, after)
	w.gauge.poll(false)
	return w.close(ctx, owned, t, end, err)
}

// retire stores the end of a shard that no longer exists or is from before the
// start, so that its children may start.
func (w *worker) retire(ctx, writes context.Context, stored state.Shard) (End, error) {
	if after := sluice.Sequence(stored.Position.Sequence); after != "" || !w.start.Past && w.origin.Ours(w.p.clock.now()) {
		if _, err := w.gap(ctx, after, true); err != nil {
			return EndStopped, nil
		}
		if w.p.o.Gaps == Halt {
			return EndHalted, errHalted
		}
	}
	end := stored.Position
	end.Finished = true
	h := &checkpoints.Holding{
		Lease: w.lease, Stored: stored.Position, Position: func() state.Position { return end },
		Observe: func() {}, Lost: func() {},
	}
	w.p.checkpoints.Hold(h)
	defer w.p.checkpoints.Drop(h)
	if err := w.p.checkpoints.Flush(writes, h); err != nil {
		return EndFailed, err
	}
	return EndFinished, nil
}

// claim claims the shard durably before a handler sees a record.
func (w *worker) claim(ctx context.Context) (state.Shard, error) {
	owner := w.p.owner.now()
	sh, err := w.p.store.claim(ctx, w.stream.id, w.shard.ID, w.start.Parent, owner)
	if errors.Is(err, state.ErrFenced) {
		w.p.fenced(owner)
	}
	switch {
	case held(err):
		return sh, err // as it is: there are many
	case err != nil:
		return sh, fmt.Errorf("claim shard %s: %w", w.shard.ID, err)
	}
	w.p.health.store(claimShard, nil)
	w.lease = state.Lease{Stream: w.stream.id, ShardID: w.shard.ID, Owner: owner, Epoch: sh.Epoch}
	return sh, nil
}

// read submits pages to the flow until the shard's end, the end of ctx, a lost
// lease or an error that the reader cannot recover.
func (w *worker) read(ctx, owned context.Context, after sluice.Sequence) (End, error) {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(owned, stop)()
	w.skipTo = after
	if after == "" && w.stream.start.Position == Latest { // else a record was kept, and so are all behind it
		w.dropBefore = w.stream.start.At
	}
	pages, ended := w.fetch(reading, after)
	defer func() { // also after a panic: waits for its calls to end
		stop()
		for pg := range pages {
			w.quota.Free(pg.bytes)
		}
	}()
	for pg := range pages {
		if err := w.take(reading, pg); err != nil {
			stop()
			break
		}
		if pg.last {
			return EndFinished, <-ended
		}
	}
	err := <-ended
	switch {
	case errors.Is(context.Cause(owned), state.ErrLeaseLost):
		return EndLost, state.ErrLeaseLost
	case errors.Is(context.Cause(ctx), errMoved):
		return EndMoved, nil
	case ctx.Err() != nil:
		return EndStopped, nil
	case errors.Is(err, errGone):
		return EndGone, err
	case errors.Is(err, errHalted):
		return EndHalted, err
	}
	return EndFailed, err
}

// fetch reads pages in its own goroutine: it fetches and decodes the next page
// while the flow works on this one. After the last page, or an error, it closes
// pages and ended has the reason.
func (w *worker) fetch(ctx context.Context, after sluice.Sequence) (<-chan page, <-chan error) {
	r := &reader{
		api: w.stream.api, shard: w.shard, limit: w.p.o.Limit, timeout: w.p.o.CallTimeout,
		halt: w.p.o.Gaps == Halt, closed: w.start.Closed, after: after, origin: w.origin, clock: &w.p.clock,
		pace: newPace(w.p.o.BusyInterval, w.p.o.IdleInterval), quota: w.quota, waits: w.gauge.noRoom,
		polled: func(p Poll, k kind) {
			w.gauge.polled(p.Err, k)
			w.p.polled(p)
		},
		gap: func(ctx context.Context, after sluice.Sequence) (*sluice.Gap, error) {
			return w.gap(ctx, after, false)
		},
		failed: func(action string, err error, k kind, retryIn time.Duration) {
			if action != getRecords {
				w.gauge.polled(err, k)
			}
			w.p.failed(w.shard, action, err, k, retryIn)
		},
	}
	if after == "" {
		r.iterator, r.latest = w.start.Latest, w.start.Latest != ""
	}
	pages, ended := make(chan page), make(chan error, 1)
	go func() {
		defer close(pages)
		defer r.drop()
		defer func() {
			if v := recover(); v != nil {
				ended <- panicked(v)
			}
		}()
		defer w.quota.Dismiss()
		for {
			pg, err := r.next(ctx)
			if err != nil {
				ended <- err
				return
			}
			w.gauge.poll(false)
			select {
			case pages <- pg:
			case <-ctx.Done():
				w.quota.Free(pg.bytes)
				ended <- ctx.Err()
				return
			}
			if pg.last {
				ended <- nil
				return
			}
			w.gauge.poll(true)
		}
	}()
	return pages, ended
}

// take submits the page's records, without those already read and those created
// before a start at LATEST. It waits while the flow's window is full.
func (w *worker) take(ctx context.Context, pg page) error {
	rest := pg.bytes // not handed over yet
	defer func() { w.quota.Free(rest) }()
	if err := w.endGap(ctx, pg); err != nil {
		return err
	}
	recs := pg.records
	if len(recs) > 0 {
		w.work.add(float64(len(recs)) + float64(pg.bytes)/1024)
	}
	skipped, dropped := 0, 0
	for len(recs) > 0 {
		rec := &recs[0]
		if rec.Sequence.Valid() && rec.Sequence.Compare(w.skipTo) <= 0 {
			skipped++ // read again from the horizon after a trim
		} else if !w.dropBefore.IsZero() && !rec.Created.IsZero() && !createdBefore(rec).After(w.dropBefore) {
			dropped++
		} else {
			break
		}
		recs = recs[1:]
	}
	if dropped > 0 {
		w.p.dropped(w.shard, dropped)
	}
	if len(recs) > 0 {
		// After the first kept record every record is kept, so a later change
		// of an item is never dropped. Only kept records move the position.
		w.dropBefore = time.Time{}
		w.skipTo = lastIn(recs, w.skipTo)
		recs = w.ahead.Unsettled(recs)
		w.gauge.observe() // what comes now waits from now on
		rest -= w.pos.Add(recs)
		if n := len(recs); n == 0 || recs[n-1].Sequence.Compare(w.skipTo) < 0 {
			w.pos.Skip(w.skipTo)
		}
	}
	if len(recs) > 0 {
		page := flow.Page{Records: recs, Bytes: rest, Freed: w.quota.Free}
		rest = 0
		if _, err := w.flow.SubmitPage(ctx, page); err != nil {
			return err
		}
	}
	w.pos.Saw(pg.seenTo)
	return nil
}

// position is the position that may be stored now: never past the flow's
// watermark.
func (w *worker) position() state.Position {
	p := state.Position{Finished: w.finished.Load(), Sequence: string(w.pos.Settle(w.flow.Settled()))}
	if left := w.left.Load(); left != nil && !p.Finished {
		p.Ahead = *left
	} else if p.Sequence == w.stored.Sequence && !p.Finished {
		p.Ahead = w.stored.Ahead
	}
	return p
}

// leave notes what is settled past the position, for the next owner.
func (w *worker) leave() {
	unsettled, submitted := w.flow.Unsettled(positions.MaxUnsettled)
	w.pos.Settle(w.flow.Settled())
	left := w.pos.Ahead(w.ahead, submitted, unsettled)
	w.left.Store(&left)
}

// close waits until the taken records are settled, and stores the position. Even
// after a lost lease it waits for handlers to return: two calls for one item must
// not overlap when the shard starts again.
//
// Records of a paused route hold up the end of a shard, and nothing else: they come
// again.
func (w *worker) close(ctx, owned context.Context, t terms, end End, cause error) (End, error) {
	if end == EndFinished {
		defer context.AfterFunc(ctx, w.flow.Leave)()
	} else {
		w.flow.Leave()
	}
	_, err := w.flow.Close(t.handlers)
	lost := errors.Is(context.Cause(owned), state.ErrLeaseLost)
	switch {
	case lost:
		end, cause = EndLost, state.ErrLeaseLost
	case end == EndFinished && err == nil:
		w.finished.Store(true)
	case end == EndFinished:
		end = EndStopped
	}
	if lost {
		return end, cause
	}
	w.leave()
	switch err := w.p.checkpoints.Flush(t.writes, w.holding); {
	case errors.Is(err, state.ErrLeaseLost):
		return EndLost, err
	case err != nil:
		return EndFailed, errors.Join(cause, fmt.Errorf("store the position of table %s shard %s: %w", w.shard.Table, w.shard.ID, err))
	}
	return end, cause
}

// release releases the shard, so that no other worker waits for its lease.
func (w *worker) release(writes context.Context) {
	if err := w.p.store.release(writes, w.lease); err != nil && !errors.Is(err, state.ErrLeaseLost) {
		w.p.failed(w.shard, "release", err, transient, 0)
	}
}
