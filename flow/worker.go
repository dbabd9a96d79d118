package flow

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/outcomes"
	"github.com/sluicehq/sluice/internal/quorum"
)

// noLimit is the limit of a flow that may start every record.
const noLimit = math.MaxUint64

// worker runs one entry after another in a goroutine of its own.
type worker struct {
	flow   *Flow
	member quorum.Member
	ctx    context.Context // carries member
	called context.Context // of the last call in this pass, if it is traced
	more   chan struct{}   // signals a new e; closed: end
	e      *entry          // written under the flow's mu
	place  int             // index in flow.all

	// The pass over e.
	routes []*sluice.Route
	few    [2]*sluice.Route // backing array of routes
	i      int              // index in routes
	t      *task            // the current task; nil in a first pass
	g      *gate            // of the current call
	call   *call            // counted by g; nil: not counted
	phase  phase            // whose code runs
	began  time.Time        // start of the call, if needed

	watched
}

// phase says whose code a worker runs. A panic or Goexit in user code is the
// record's error; a panic in our own code is not hidden.
type phase uint8

const (
	ours phase = iota
	matching
	asking // the dead letters, whether they hold the item
	handling
	parking
)

// host lends concurrency slots while handlers wait in a sink.
type host struct{ f *Flow }

func (h host) Parked(n int) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	h.f.running -= n
	h.f.start()
}

func (h host) Unparked(n int) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	h.f.running += n
}

// start runs a ready entry if a slot is free. The woken worker starts the next one
// (see spread), so quick handlers do not wake many workers for nothing. While
// entries are ready and slots are free, one woken worker has not begun yet, and
// the scope counts it. mu is held.
func (f *Flow) start() {
	if f.running < f.opts.Concurrency {
		if e := f.pick(); e != nil {
			f.begin(e)
		}
	}
	f.wakeSubmit()
}

// pick returns the next entry to run, or nil. Entries that waited go before new
// ones, because their gate or their share of the slots let them through. mu is
// held.
func (f *Flow) pick() *entry {
	if t := f.next(); t != nil {
		t.e.task, t.e.waits = t, false
		return t.e
	}
	return f.lanes.pop(f.limit.Load())
}

// spread runs first in a woken worker and starts the next.
func (f *Flow) spread() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.start()
}

// begin hands e to a worker. It counts the worker into the scope first, so that
// the scope never looks idle in between. mu is held.
func (f *Flow) begin(e *entry) {
	e.busy = true
	f.running++
	f.busy++
	f.scope.Enter(1)
	f.watch()
	if n := len(f.free); n > 0 {
		w := f.free[n-1]
		f.free[n-1] = nil
		f.free = f.free[:n-1]
		f.spare = min(f.spare, n-1)
		w.e = e
		w.more <- struct{}{}
		return
	}
	w := &worker{flow: f, more: make(chan struct{}, 1), e: e, place: len(f.all)}
	w.routes = w.few[:0]
	w.member.Scope, w.member.Host = &f.scope, host{f}
	if t := f.opts.Hooks.Tracer; t != nil {
		w.member.Tracer = t
	}
	w.ctx = quorum.With(f.ctx, &w.member)
	f.all = append(f.all, w)
	f.workers.Add(1)
	go w.run()
}

func (w *worker) run() {
	defer w.flow.workers.Done()
	returned := false
	defer func() {
		if !returned {
			w.flow.finish(w, false)
		}
	}()
	grow()
	w.flow.spread()
	for {
		w.pass()
		more, end := w.flow.finish(w, true)
		if !more && !end {
			if _, more = <-w.more; more {
				w.flow.spread()
			}
		}
		if !more {
			returned = true
			return
		}
	}
}

// grow allocates a stack that fits most handlers with their sinks. Growing it
// under them step by step copies all frames. That took a fifth of the time of a
// record on its way to an index.
//
//go:noinline
func grow() {
	var frame [4 << 10]byte
	runtime.KeepAlive(&frame)
}

// finish ends w's pass over its entry, which is now settled or waits. A live
// worker gets another entry, joins the free list, or ends.
func (f *Flow) finish(w *worker, alive bool) (more, end bool) {
	f.mu.Lock()
	e, trace := w.e, w.e.trace
	w.e = nil
	e.busy = false
	if t := e.task; t != nil {
		f.endRetry(t.call)
		e.task, t.call = nil, nil
	}
	f.running--
	f.busy--
	ended, settled := true, false
	switch {
	case f.over:
		f.late(e)
	case e.open == 0:
		settled = true
		f.settle(e)
	default:
		ended = false
		f.rest(e)
	}
	if alive && f.running < f.opts.Concurrency {
		if w.e = f.pick(); w.e != nil {
			w.e.busy = true
			f.running++
			f.busy++
			more = true
		}
	}
	if !more {
		f.start()
		if end = !alive || f.over; end {
			f.dismiss(w)
		} else {
			f.free = append(f.free, w)
		}
	}
	f.wakeSubmit()
	f.checkQuiet()
	f.mu.Unlock()
	if trace != nil && ended {
		trace.End(settled)
	}
	if !more {
		f.scope.Leave(1)
	}
	return more, end
}

// settle settles e.
func (f *Flow) settle(e *entry) {
	f.lanes.leave(e)
	if e.tasks != nil {
		delete(f.held, e)
	}
	e.page.leave(e)
	f.tidy(e.page, nil)
	moved := f.window.settle(e.ord, e.bytes, e.held)
	f.lanes.put(e)
	if moved {
		f.settled.Store(f.window.low)
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
}

// rest makes e wait until one of its tasks can run.
func (f *Flow) rest(e *entry) {
	f.tidy(e.page, e)
	e.waits = true
	for _, t := range e.tasks {
		if t.state == idle {
			f.enqueue(t)
		}
	}
}

// dismiss removes a worker.
func (f *Flow) dismiss(w *worker) {
	last := len(f.all) - 1
	f.all[w.place] = f.all[last]
	f.all[w.place].place = w.place
	f.all[last] = nil
	f.all = f.all[:last]
}

// pass does all current work of w's entry.
func (w *worker) pass() {
	w.called = nil
	defer func() {
		if w.phase != ours {
			w.crashed(&outcomes.Panic{Value: recover(), Stack: debug.Stack()})
		}
	}()
	if w.e.tasks == nil {
		w.t = nil
		w.first()
		w.routes = w.routes[:0]
	}
	if w.t = w.e.task; w.t != nil {
		w.again(w.t)
	}
	for t := w.doomed(); t != nil; t = w.doomed() {
		w.park(t)
	}
}

// doomed returns a task to be parked now, or nil. Code that dooms other tasks of
// w's record holds the lock.
func (w *worker) doomed() *task {
	if w.e.tasks == nil {
		return nil
	}
	f := w.flow
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range w.e.tasks {
		if t.doomed && t.state == idle && t.when.IsZero() && w.e.ord < f.limit.Load() {
			return t
		}
	}
	return nil
}

// crashed makes err the error of the code that ran.
func (w *worker) crashed(err error) {
	was := w.phase
	w.phase = ours
	switch was {
	case matching:
		w.condemn(err)
		return
	case asking:
		if w.t == nil {
			w.t = w.flow.addTask(w.e, w.g)
			w.flow.keep(w.e, true)
		}
		w.notCalled()
		w.parkFailed(w.t, err)
	case handling:
		w.returned()
		w.ended(judge(err))
	case parking:
		w.returned()
		w.parkFailed(w.t, err)
	}
	w.remember(w.i + 1)
}

// first runs the routes of a record in order. A route that does not succeed
// becomes a task, and the others still run.
func (w *worker) first() {
	f, e := w.flow, w.e
	w.routes, w.i = w.routes[:0], 0
	if err := e.rec.Err(); err != nil {
		w.condemn(err)
		return
	}
	w.phase = matching
	routes, err := f.matcher.Match(w.routes, e.rec)
	w.phase = ours
	w.routes = routes
	if err != nil {
		w.condemn(err)
		return
	}
	for i := range routes {
		if f.group.gate(routes[i]) == nil {
			w.condemn(unknownRoute(routes[i]))
			return
		}
	}
	if len(routes) == 0 {
		w.handled(nil, Unrouted, 0, nil)
		return
	}
	for ; w.i < len(routes); w.i++ {
		if e.ord >= f.limit.Load() {
			w.remember(w.i)
			return
		}
		w.t, w.g = nil, f.group.gate(routes[w.i])
		if f.opts.ParkItem && !w.free(w.g) {
			continue
		}
		var ok bool
		if w.call, ok = w.g.try(f); !ok {
			f.addTask(e, w.g).cleared = true
			if w.g.paused.Load() { // maybe for hours
				f.keep(e, false)
			}
			continue
		}
		w.ended(w.invoke(w.g.route.Handler))
	}
}

// remember makes tasks of the i-th and later routes, which a first pass did not
// reach. A later pass has none.
func (w *worker) remember(i int) {
	for ; i < len(w.routes); i++ {
		w.flow.addTask(w.e, w.flow.group.gate(w.routes[i]))
	}
	w.routes = w.routes[:0]
}
