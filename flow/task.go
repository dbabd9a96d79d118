package flow

import (
	"time"

	"github.com/sluicehq/sluice"
)

// task is one route of a record that did not succeed at once. What others
// read is changed under the flow's mu.
type task struct {
	e       *entry
	gate    *gate // nil when the record could not be decoded or matched
	handler sluice.Handler
	state   taskState
	doomed  bool // to be parked, not called
	cleared bool // no earlier change of its item is parked
	behind  bool // one is
	poison  bool // it is parked because it fails while its route works

	failed   bool // its last call did, with a plain error
	refused  bool // its last call was, for load
	unwanted bool // somebody wants it parked, unless it succeeds first: see Park
	byHand   bool // it is parked for that

	failure sluice.Failure
	tries   int           // failures to do what is to be done, one after another
	took    time.Duration // the last call
	when    time.Time     // of the next try; zero: it was never called, and goes before others
	expires time.Time     // when the record is parked for its age; zero is never
	call    *call         // its gate has let it through
	place   int           // in its heap
	waits   bool          // its gate counts it among those that wait
}

type taskState uint8

const (
	idle   taskState = iota // to be put into its queue once no worker has the record
	queued                  // in its queue
	frozen                  // failed for good with no dead letter to take it
	done
)

func (t *task) route() *sluice.Route {
	if t.gate == nil {
		return nil
	}
	return t.gate.route
}

func (t *task) tooOld(now time.Time) bool { return !t.expires.IsZero() && !now.Before(t.expires) }

// note keeps what failed.
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
	if maxAge > 0 && f.opts.DeadLetter != nil {
		now, created := time.Now(), e.at
		if e.isLive() {
			created = e.rec.Created.Add(now.Sub(f.opts.Clock()))
		}
		t.expires = expiry(created, now, f.opts.Policy == Park && e.isLive(), maxAge)
	}
	e.tasks = append(e.tasks, t)
	e.open++
	if !f.over {
		f.held[e] = struct{}{}
		if t.waits = g != nil; t.waits {
			g.wait()
		}
	}
	return t
}

// isLive reports whether the stream's trim threatens the record.
func (e *entry) isLive() bool { return e.rec.Origin == sluice.Live && !e.rec.Created.IsZero() }

// finishTask ends t: its route has no more to do with the record.
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

// leaveGate has t wait for its route no more, and reports whether the state of
// the route has changed by that. mu is held.
func (f *Flow) leaveGate(t *task, giveUp, poison bool) (moved bool) {
	moved = t.waits && t.gate.done(t.e.item(), giveUp, poison)
	t.waits = false
	return moved
}

// item is what a route knows the record's item by: items of two tables may have
// the same key. A record whose keys cannot be read is an item of its own.
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
