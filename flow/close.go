package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/internal/routed"
)

// Close stops taking records. It waits until every submitted record is settled, or
// until ctx ends; after [Flow.Leave] not for records of paused routes. Under Stop it
// waits for the running handlers at most. It returns Settled. If that is less than the
// records submitted, it also returns an error: a [*RecordError] of the record that
// stopped or holds the flow, the cause for which Open's ctx ended, or the error of ctx
// with a handler that still runs.
//
// Close cancels handlers when a tenth of the time to ctx's deadline remains (at
// most 1 s). Handlers that obey have then returned before Close does. Work that a
// handler does after Close has no effect on the flow. A second Close returns the
// same result.
func (f *Flow) Close(ctx context.Context) (settled uint64, err error) {
	f.closing.Lock()
	defer f.closing.Unlock()
	f.mu.Lock()
	if f.over {
		f.mu.Unlock()
		return f.result.settled, f.result.err
	}
	f.noMore = true
	f.quiet = make(chan struct{})
	f.wakeSubmit()
	f.checkQuiet()
	f.mu.Unlock()

	gaveUp := f.drain(ctx)

	f.mu.Lock()
	f.result.settled = f.window.low
	f.result.err = f.why(gaveUp)
	f.stop(0, errClosed)
	f.over = true
	f.endFree(len(f.free))
	f.clock.stop()
	moved, traces := f.abandon()
	alone := f.busy == 0
	if alone {
		close(f.idle)
	}
	joined := f.joined
	f.mu.Unlock()
	if joined {
		f.group.leave(f)
	}
	for _, g := range moved {
		f.announce(g)
	}
	for _, t := range traces {
		t.End(false)
	}
	f.dead.Store(true)

	f.unwatch()
	f.cancel(errClosed)
	f.ticks.Wait()
	if alone {
		f.workers.Wait()
	}
	return f.result.settled, f.result.err
}

// drain waits until no work is left. It returns the reason if it gave up.
func (f *Flow) drain(ctx context.Context) error {
	select {
	case <-f.quiet:
		return nil
	default:
	}
	var cancelAt, giveUpAt <-chan time.Time
	if d, ok := ctx.Deadline(); ok {
		left := time.Until(d)
		t := time.NewTimer(left - min(left/10, time.Second))
		defer t.Stop()
		cancelAt = t.C
	}
	if !f.deadline.IsZero() {
		t := time.NewTimer(time.Until(f.deadline))
		defer t.Stop()
		giveUpAt = t.C
	}
	for {
		select {
		case <-f.quiet:
			return nil
		case <-cancelAt:
			f.end(errDrained)
			f.cancel(errDrained)
		case <-giveUpAt:
			f.end(errDeadline)
			return errDeadline
		case <-ctx.Done():
			f.end(context.Cause(ctx))
			return context.Cause(ctx)
		}
	}
}

// why returns the reason why submitted records are not settled. mu is held.
func (f *Flow) why(gaveUp error) error {
	submitted := f.window.high
	if f.window.low == submitted {
		return nil
	}
	cause := f.cause
	if gaveUp != nil {
		cause = gaveUp
		for _, w := range f.all {
			if w.e == nil || w.current.Load() == 0 {
				continue
			}
			cause = fmt.Errorf("a handler still runs: route %q, key hash %016x: %w", routed.Name(w.route.Load()), w.e.hash, cause)
			break
		}
	}
	if r, ok := cause.(*RecordError); ok {
		return r
	}
	if cause == nil || errors.Is(cause, errPaused) {
		if t := f.firstFrozen(); t != nil {
			return recordError(t)
		}
	}
	return fmt.Errorf("flow: ended with %d of %d records settled: %w", f.window.low, submitted, cause)
}

func (f *Flow) firstFrozen() (first *task) {
	for e := range f.held {
		for _, t := range e.tasks {
			if t.state == frozen && (first == nil || e.ord < first.e.ord) {
				first = t
			}
		}
	}
	return first
}

// end stops starting records.
func (f *Flow) end(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop(0, cause)
}

// stopAt starts no record at or after t's record. mu is held.
func (f *Flow) stopAt(t *task) {
	f.stop(t.e.ord, recordError(t))
}

// stop lowers the limit: records at or above it do not start. mu is held.
func (f *Flow) stop(limit uint64, cause error) {
	if limit >= f.limit.Load() {
		return
	}
	f.limit.Store(limit)
	if _, failed := f.cause.(*RecordError); !failed || limit > 0 {
		f.cause = cause
	}
	f.wakeSubmit()
	f.checkQuiet()
}

// checkQuiet wakes Close when nothing runs and nothing can start. mu is held.
func (f *Flow) checkQuiet() {
	if f.quiet != nil && !f.over && f.group.handsOver.Load() && f.limit.Load() > 0 && !f.canMove() {
		f.limit.Store(0)
		f.cause = cmp.Or(f.cause, errHandedOver)
	}
	if f.busy > 0 {
		return
	}
	if f.over {
		select {
		case <-f.idle:
		default:
			close(f.idle)
		}
		return
	}
	if f.quiet == nil || f.canMove() {
		return
	}
	select {
	case <-f.quiet:
	default:
		if !f.window.empty() && f.leaving { // else a resumed route would start records behind Close
			f.limit.Store(0)
			f.cause = cmp.Or(f.cause, errPaused)
		}
		close(f.quiet)
	}
}

// canMove reports whether an entry can still run.
func (f *Flow) canMove() bool {
	if f.window.empty() {
		return false
	}
	limit, handsOver := f.limit.Load(), f.group.handsOver.Load()
	for e := f.lanes.first; e != nil; e = e.link {
		if e.ord < limit {
			return true
		}
	}
	if handsOver {
		for _, w := range f.all {
			if w.e != nil && w.e.task == nil { // a first pass: more of its lane may follow
				return true
			}
		}
	}
	for e := range f.held {
		if e.ord >= limit {
			continue
		}
		for _, t := range e.tasks {
			if t.state != frozen && t.state != done && !(f.leaving && t.paused()) && !(handsOver && t.troubled()) {
				return true
			}
		}
	}
	return false
}
