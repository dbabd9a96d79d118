package flow

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
)

// submitChunk is the number of records hashed before taking the lock.
const submitChunk = 64

// Submit adds records in stream order. It blocks while the window is full. It
// returns the ordinal of the last record taken; the first ordinal is 1. The flow
// keeps recs until they are settled. Only one goroutine at a time may submit.
//
// An error means that not all records were taken: ctx ended, or the flow was
// closed, cancelled, or stopped by a failure.
func (f *Flow) Submit(ctx context.Context, recs ...sluice.Record) (last uint64, err error) {
	return f.SubmitPage(ctx, Page{Records: recs, Bytes: unknownBytes})
}

// SubmitPage is Submit with a report when the memory of the records is free. The
// flow owns pg from the call on, even after an error.
func (f *Flow) SubmitPage(ctx context.Context, pg Page) (last uint64, err error) {
	f.scope.Enter(1)
	defer f.scope.Leave(1)
	p := newPage(pg)
	recs := pg.Records
	if t := f.opts.Hooks.Tracer; t != nil && len(recs) > 0 {
		p.trace = t.Page(ctx, recs)
		defer func() { p.trace.Submitted() }() // without the lock
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if len(recs) > 0 {
		err = f.refused()
	}
	if err != nil || len(recs) == 0 {
		p.give(p.bytes)
		return f.window.high, err
	}
	p.place = len(f.pages)
	f.pages = append(f.pages, p)
	defer func() {
		if !f.over { // else it was abandoned
			p.left--
			f.tidy(p, nil)
		}
	}()
	var hashes [submitChunk]uint64
	now := time.Now()
	for len(recs) > 0 {
		n := min(len(recs), submitChunk)
		f.mu.Unlock()
		for i := range n {
			hashes[i] = recs[i].Keys.Hash()
		}
		f.mu.Lock()
		for i := 0; i < n; {
			if err := f.refused(); err != nil {
				return f.window.high, err
			}
			took := f.take(p, recs[i:n], hashes[i:n], len(recs)-i, now)
			f.start()
			i += took
			if i == n {
				break
			}
			if err := f.awaitRoom(ctx, weight(&recs[i])); err != nil {
				return f.window.high, err
			}
			now = time.Now()
		}
		recs = recs[n:]
	}
	return f.window.high, nil
}

// refused returns the reason why no record is taken.
func (f *Flow) refused() error {
	if f.limit.Load() != noLimit {
		return f.cause
	}
	if f.noMore {
		return errClosed
	}
	return nil
}

// take adds the recs that fit and returns their number.
func (f *Flow) take(p *page, recs []sluice.Record, hashes []uint64, want int, now time.Time) int {
	for i := range recs {
		rec := &recs[i]
		n := weight(rec)
		if !f.window.fits(n) {
			return i
		}
		e := f.lanes.get(want - i)
		e.rec, e.bytes, e.at, e.page = rec, n, now, p
		p.left++
		e.hash, e.alone = hashes[i], !rec.Keys.Exists()
		e.ord = f.window.add(n)
		if before := f.lanes.join(e); before != nil && (before.kept || before.held) {
			f.keepBehind(before)
		}
	}
	return len(recs)
}

// awaitRoom blocks until a record of n bytes may fit. A waiting Submit cannot join
// a group commit; the waker counts it in again first. mu is held at the call and
// the return.
func (f *Flow) awaitRoom(ctx context.Context, n int64) error {
	f.awaited, f.awaitedBytes, f.awaitedAt = true, n, time.Now()
	f.mu.Unlock()
	f.scope.Leave(1)
	select {
	case <-f.room:
		f.mu.Lock()
		return nil
	case <-ctx.Done():
	}
	f.mu.Lock()
	if f.awaited {
		f.awaited = false
		f.scope.Enter(1)
	} else {
		<-f.room
	}
	return context.Cause(ctx)
}

// wakeSubmit wakes a waiting Submit when its record fits, or when the flow takes
// no more records. While other work exists, Submit sleeps until an eighth of the
// window is free, to save wake-ups.
func (f *Flow) wakeSubmit() {
	if !f.awaited {
		return
	}
	fits := f.window.fits(f.awaitedBytes) && (f.lanes.first == nil || f.window.roomy())
	if fits || f.refused() != nil {
		f.awaited = false
		f.scope.Enter(1)
		f.room <- struct{}{}
	}
}
