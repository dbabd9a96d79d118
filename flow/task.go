package flow

import (
	"time"

	"github.com/sluicehq/sluice"
)

// task is one route of a record that did not succeed at once. The state and
// all that others read is changed under the flow's mu.
type task struct {
	flow    *Flow
	e       *entry
	gate    *gate // nil when the record could not be decoded or matched
	handler sluice.Handler
	state   taskState
	doomed  bool // to be parked, not called
	cleared bool // no earlier change of its item is parked
	held    bool // one is

	failure sluice.Failure
	counted int           // failures that count against the record
	seen    uint64        // breaker.times at the last failure
	tries   int           // failures to do what is to be done, one after another
	took    time.Duration // the last call
	when    time.Time     // of the next try, in backoff
	expires time.Time     // when a failing record is parked for its age; zero is never

	permitted bool // permit is ours already
	permit    permit

	// Of the gate's queue, under its mu.
	ticket         uint64 // kept until it has led to a call
	queued         bool
	before, behind *task
}

type taskState uint8

const (
	due     taskState = iota // a worker can go on with it
	running                  // a worker does
	backing                  // in backoff
	waiting                  // in its gate's queue
	frozen                   // failed for good with no dead letter to take it
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
	t := &task{flow: f, e: e, gate: g}
	maxAge := f.opts.MaxAge
	if g != nil {
		t.handler = g.route.Handler
		t.failure.Route = g.route.Name
		if g.route.MaxAge > 0 {
			maxAge = g.route.MaxAge
		}
	}
	if maxAge > 0 && f.opts.DeadLetter != nil {
		t.expires = e.born().Add(maxAge)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	e.tasks = append(e.tasks, t)
	e.open++
	f.held[e] = struct{}{}
	return t
}

// born is the time from which a record's age counts. Only a live record is
// threatened by the stream's trim.
func (e *entry) born() time.Time {
	if e.rec.Origin != sluice.Live || e.rec.Created.IsZero() {
		return e.at
	}
	return e.rec.Created
}

// nextDue takes e's next task that a worker can go on with. The one that has a
// permit comes first: its route's limit must not wait for another's handler.
func (f *Flow) nextDue(e *entry) *task {
	f.mu.Lock()
	var next *task
	for _, t := range e.tasks {
		if t.state == due && (next == nil || t.permitted) {
			next = t
		}
	}
	if next == nil || e.ord < f.limit.Load() {
		if next != nil {
			next.state = running
		}
		f.mu.Unlock()
		return next
	}
	unused := next.permitted
	next.permitted = false
	f.mu.Unlock()
	if unused {
		next.gate.unused(next.permit)
		next.gate.pump()
	}
	return nil
}

// finishTask ends t: its route has no more to do with the record.
func (f *Flow) finishTask(t *task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.state = done
	t.e.open--
}

// startPermitted starts the entry of t, which its gate has let through with p,
// if it can run at once. Else the entry asks the gate again when it can.
func (f *Flow) startPermitted(t *task, p permit) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := t.e
	t.state = due
	if f.over || e.ord >= f.limit.Load() || !e.waits {
		return false
	}
	e.waits = false
	if f.running >= f.opts.Concurrency {
		f.lanes.ready(e)
		return false
	}
	t.permitted, t.permit, t.ticket = true, p, 0
	f.begin(e)
	return true
}

// expire has t parked: it became too old while its route failed for all.
func (f *Flow) expire(t *task, cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.note(cause, time.Now())
	t.doomed, t.state = true, due
	f.wake(t.e)
}

// wake makes a waiting entry ready.
func (f *Flow) wake(e *entry) {
	if e.waits && !f.over {
		e.waits = false
		f.lanes.ready(e)
		f.start()
	}
}
