package flow

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
)

// patrols is how many times within StuckAfter the workers are looked at.
const patrols = 8

// watched is what the watch over handlers sees of a worker. A call has a
// number; the watch remembers which one it saw and since when, so that no call
// has to read the clock.
type watched struct {
	calls   uint64                       // the worker's own count, in steps of 2
	current atomic.Uint64                // number of the call that runs, or 0; the lowest bit: reported
	route   atomic.Pointer[sluice.Route] // of it; nil: none

	// Of the watch, under the flow's mu.
	seen   uint64
	seenAt time.Time
	stuck  time.Time // seenAt of the call reported last; under the flow's reporting
}

// enter begins a call.
func (w *watched) enter(r *sluice.Route) {
	if w.route.Load() != r {
		w.route.Store(r)
	}
	w.calls += 2
	w.current.Store(w.calls)
}

// returned ends a call and, when it was reported as stuck, says so.
func (w *worker) returned() {
	if w.current.Swap(0)&1 == 0 {
		return
	}
	f := w.flow
	f.reporting.Lock()
	defer f.reporting.Unlock()
	f.tellStuck(w.e.rec, w.route.Load(), time.Since(w.stuck), true)
}

// watch starts the watch over handlers unless it is on. mu is held.
func (f *Flow) watch() {
	if f.clock.watchAt.IsZero() {
		f.clock.watchAt = time.Now().Add(f.opts.StuckAfter / patrols)
		f.clock.arm(f.clock.watchAt)
	}
}

// suspect is a call that has been running for too long.
type suspect struct {
	w     *worker
	call  uint64
	rec   *sluice.Record
	route *sluice.Route
	since time.Time
}

// patrol looks for handlers that have been running for too long; what waits
// behind a slow one no longer pins its pages. It ends the
// workers that had nothing to do since the last one. It ends the watch, and all
// workers, of a flow that has nothing to do. mu is held.
func (f *Flow) patrol(now time.Time) (found []suspect) {
	c := &f.clock
	if c.watchAt.IsZero() || now.Before(c.watchAt) {
		return nil
	}
	if f.busy == 0 {
		c.watchAt = time.Time{}
		f.endFree(len(f.free))
		if f.window.empty() {
			f.shrink()
		}
		return nil
	}
	f.endFree(f.spare)
	for _, w := range f.all {
		call := w.current.Load()
		switch {
		case w.e == nil || call == 0:
			w.seen = 0
		case call&^1 != w.seen:
			w.seen, w.seenAt = call&^1, now
		default:
			f.keepBehind(w.e)
			if call&1 == 0 && now.Sub(w.seenAt) >= f.opts.StuckAfter {
				found = append(found, suspect{w, call, w.e.rec, w.route.Load(), w.seenAt})
			}
		}
	}
	c.watchAt = now.Add(f.opts.StuckAfter / patrols)
	return found
}

// endFree ends n workers without an entry, those that had none for longest. mu
// is held.
func (f *Flow) endFree(n int) {
	for _, w := range f.free[:n] {
		f.dismiss(w)
		close(w.more)
	}
	f.free = slices.Delete(f.free, 0, n)
	f.spare = len(f.free)
}

// report tells about s unless it has come back.
func (f *Flow) report(s suspect) {
	f.reporting.Lock()
	defer f.reporting.Unlock()
	if s.w.current.CompareAndSwap(s.call, s.call|1) {
		s.w.stuck = s.since
		f.tellStuck(s.rec, s.route, time.Since(s.since), false)
	}
}

func (f *Flow) tellStuck(rec *sluice.Record, route *sluice.Route, since time.Duration, returned bool) {
	name := ""
	if route != nil {
		name = route.Name
	}
	msg := "handler does not return"
	if returned {
		msg = "handler has returned at last"
	}
	f.opts.Logger.Warn(msg, "route", name, "table", rec.Table, "shard", rec.ShardID,
		"sequence", string(rec.Sequence), "event", rec.EventID, "since", since)
	if h := f.opts.Hooks.Stuck; h != nil {
		h(rec, route, since, returned)
	}
}
