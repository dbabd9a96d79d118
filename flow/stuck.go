package flow

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/routed"
)

// patrols is the number of looks at the workers within StuckAfter.
const patrols = 8

// watched is what the watch sees of a worker. Each call has a number. The watch
// remembers the number and when it first saw it, so no call reads the clock.
type watched struct {
	calls   uint64                       // the worker's own count, in steps of 2
	current atomic.Uint64                // number of the call that runs, or 0; the lowest bit: reported
	route   atomic.Pointer[sluice.Route] // route of the call; nil: none

	// Of the watch, under the flow's mu.
	seen   uint64
	seenAt time.Time
	stuck  time.Time // seenAt of the last reported call; under the flow's reporting
}

// enter begins a call.
func (w *watched) enter(r *sluice.Route) {
	if w.route.Load() != r {
		w.route.Store(r)
	}
	w.calls += 2
	w.current.Store(w.calls)
}

// returned ends a call. It reports the return of a call that was reported as
// stuck.
func (w *worker) returned() {
	if w.current.Swap(0)&1 == 0 {
		return
	}
	f := w.flow
	f.reporting.Lock()
	defer f.reporting.Unlock()
	f.tellStuck(w.e.rec, w.route.Load(), time.Since(w.stuck), true)
}

// watch starts the watch over handlers if it is off. mu is held.
func (f *Flow) watch() {
	if f.clock.watchAt.IsZero() {
		f.clock.watchAt = time.Now().Add(f.opts.StuckAfter / patrols)
		f.clock.arm(f.clock.watchAt)
	}
}

// suspect is a call that runs for too long.
type suspect struct {
	w     *worker
	call  uint64
	rec   *sluice.Record
	route *sluice.Route
	since time.Time
}

// patrol looks for handlers that run for too long, and unpins the pages of records
// behind slow ones. It ends workers that were idle since the last patrol. In an
// idle flow it ends the watch and all workers. mu is held.
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

// endFree ends the n workers that have been free the longest. mu is held.
func (f *Flow) endFree(n int) {
	for _, w := range f.free[:n] {
		f.dismiss(w)
		close(w.more)
	}
	f.free = slices.Delete(f.free, 0, n)
	f.spare = len(f.free)
}

// report reports s as stuck unless it has returned.
func (f *Flow) report(s suspect) {
	f.reporting.Lock()
	defer f.reporting.Unlock()
	if s.w.current.CompareAndSwap(s.call, s.call|1) {
		s.w.stuck = s.since
		f.tellStuck(s.rec, s.route, time.Since(s.since), false)
	}
}

func (f *Flow) tellStuck(rec *sluice.Record, route *sluice.Route, since time.Duration, returned bool) {
	msg := "handler does not return"
	if returned {
		msg = "handler has returned at last"
	}
	f.opts.Logger.Warn(msg, "route", routed.Name(route), "table", rec.Table, "shard", rec.ShardID,
		"sequence", string(rec.Sequence), "event", rec.EventID, "since", since)
	if h := f.opts.Hooks.Stuck; h != nil {
		h(rec, route, since, returned)
	}
}
