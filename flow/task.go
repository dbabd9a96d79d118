package flow

import (
	"time"

	"github.com/sluicehq/sluice"
)

// task is one route of a record that did not succeed at once. The flow's mu guards
// fields that others read.
type task struct {
	e       *entry
	gate    *gate // nil when the record could not be decoded or matched
	handler sluice.Handler
	state   taskState
	doomed  bool // to be parked, not called
	cleared bool // no earlier change of its item is parked
	behind  bool // an earlier change of its item is parked
	poison  bool // parked because it fails while its route works

	failed   bool // its last call failed with a plain error
	refused  bool // its last call was refused for load
	unwanted bool // Park was called: it is parked unless it succeeds first
	byHand   bool // parked by Park

	failure sluice.Failure
	tries   int           // consecutive failures of the call, or of parking
	took    time.Duration // duration of the last call
	when    time.Time     // of the next try; zero: never called, and first in line
	expires time.Time     // when the record is parked for its age; zero is never
	counted time.Time     // up to which expires has the pauses of the route
	call    *call         // its gate let the call through
	place   int           // index in its heap
	waits   bool          // its gate counts it as waiting
}

type taskState uint8

const (
	idle   taskState = iota // to be queued once no worker has the record
	queued                  // in its queue
	frozen                  // failed for good without dead letters
	done
)

func (t *task) route() *sluice.Route {
	if t.gate == nil {
		return nil
	}
	return t.gate.route
}

func (t *task) tooOld(now time.Time) bool { return !t.expires.IsZero() && !now.Before(t.expires) }

// note keeps the failure.
func (t *task) note(err error, now time.Time) {
	if t.failure.First == nil {
		t.failure.First, t.failure.FirstAt = err, now
	}
	t.failure.Last, t.failure.LastAt = err, now
}

// addTask gives e a task for the route of g.
func (f *Flow) addTask(e *entry, g *gate) *task {
	t := &task{e: e, gate: g}
	maxAge := f.opts.MaxAge
	if g != nil {
		t.handler = g.route.Handler
		t.failure.Route = g.route.Name
		if g.route.MaxAge > 0 {
			maxAge = g.route.MaxAge
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if old, ok := f.group.taken(handedOf(t)); ok {
		t.failure, t.tries = old.failure, old.tries
		e.at, now = old.at, old.failure.FirstAt
	}
	if maxAge > 0 && f.opts.DeadLetter != nil {
		created := f.created(e)
		t.expires, t.counted = created.Add(maxAge), created
		if g != nil { // it may have waited behind another, in a pause
			f.putOff(t, now)
		}
		t.expires = later(t.expires, expiry(created, now, f.trims(e), maxAge))
	}
	e.tasks = append(e.tasks, t)
	e.open++
	if !f.over {
		f.held[e] = struct{}{}
		if !f.joined {
			f.joined = true
			f.group.join(f)
		}
		if t.waits = g != nil; t.waits {
			g.wait()
		}
	}
	return t
}

// isLive reports whether the stream may trim the record.
func (e *entry) isLive() bool { return e.rec.Origin == sluice.Live && !e.rec.Created.IsZero() }

// trims reports whether e must be parked before the stream trims it.
func (f *Flow) trims(e *entry) bool { return f.opts.Policy == Park && e.isLive() }

// created is when a live record was created, by this machine's clock; of another
// record, when it was submitted.
func (f *Flow) created(e *entry) time.Time {
	if !e.isLive() {
		return e.at
	}
	return e.rec.Created.Add(time.Since(f.opts.Clock()))
}

// finishTask ends t: its route is done with the record.
func (f *Flow) finishTask(t *task, giveUp, poison bool) {
	f.mu.Lock()
	t.state = done
	t.e.open--
	moved := f.leaveGate(t, giveUp, poison)
	f.mu.Unlock()
	if moved {
		f.announce(t.gate)
	}
}

// leaveGate ends t's wait for its route, and reports whether that changed the
// state of the route. mu is held.
func (f *Flow) leaveGate(t *task, giveUp, poison bool) (moved bool) {
	moved = t.waits && t.gate.done(t.e.item(), giveUp, poison)
	t.waits = false
	return moved
}

// item identifies the record's item at a route. It includes the table, because two
// tables may have the same key. A record with unreadable keys is its own item.
func (e *entry) item() uint64 {
	h := e.hash
	if e.alone {
		h ^= e.ord * 0x9E3779B97F4A7C15
	}
	for i := range len(e.rec.Table) { // FNV-1a
		h = (h ^ uint64(e.rec.Table[i])) * 0x100000001B3
	}
	return h
}
