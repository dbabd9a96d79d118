package flow

import (
	"container/heap"
	"slices"
	"time"
)

// retryPart is the part of a flow's slots, and of its route's limit, that retries
// take at most: those that fail must not crowd out those that succeed. Records that
// were refused for load are no retries here: the limit paces them. One retry at a
// time of each route always runs: retries that hang must not keep those of another
// route. In an outage and after it the route paces all calls itself.
const retryPart = 4

// freshTurns is how many records that were never tried go before one that was,
// when a route has to choose.
const freshTurns = 3

// queue is the tasks of one route that wait in a flow: for the time of their
// next try, for their gate, or for a slot. Those of the dead letters have no
// gate. It belongs to the flow's mu.
type queue struct {
	flow     *Flow
	gate     *gate
	fresh    tasks   // were never called, in the order of the stream
	retried  tasks   // by the time of their next try
	refused  tasks   // likewise: their last call was refused for load
	turns    int     // of fresh ones since the last retry
	retrying int     // its part of the flow's
	retries  []*call // that run, in the order in which they began
	asked    bool    // its gate tells when to go on
}

// tasks is a heap.
type tasks []*task

func (h tasks) Len() int { return len(h) }
func (h tasks) Less(i, j int) bool {
	if h[i].when.Equal(h[j].when) {
		return h[i].e.ord < h[j].e.ord
	}
	return h[i].when.Before(h[j].when)
}
func (h tasks) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}
func (h *tasks) Push(t any) {
	t.(*task).place = len(*h)
	*h = append(*h, t.(*task))
}
func (h *tasks) Pop() any {
	old := *h
	last := len(old) - 1
	t := old[last]
	old[last] = nil
	*h = old[:last]
	return t
}

// queue returns the queue of g, or of the dead letters. mu is held.
func (f *Flow) queue(g *gate) *queue {
	i := 0
	if g != nil {
		i = g.route.Index + 1
	}
	for len(f.queues) <= i {
		f.queues = append(f.queues, nil)
	}
	if f.queues[i] == nil {
		f.queues[i] = &queue{flow: f, gate: g}
	}
	return f.queues[i]
}

// heap is where t waits.
func (q *queue) heap(t *task) *tasks {
	switch {
	case t.when.IsZero():
		return &q.fresh
	case t.refused:
		return &q.refused
	}
	return &q.retried
}

// enqueue has t wait. mu is held.
func (f *Flow) enqueue(t *task) {
	if t.unwanted && t.failed && !t.doomed {
		t.doom()
		t.byHand = true
	}
	t.unwanted = false
	g := t.gate
	if t.doomed {
		g = nil
	}
	q := f.queue(g)
	t.state = queued
	heap.Push(q.heap(t), t)
	f.queued++
	if !t.when.IsZero() {
		f.clock.arm(t.when)
	}
	if g != nil && !t.expires.IsZero() {
		f.clock.expire(t.expires)
	}
}

// next takes a waiting task that can be run now. mu is held.
func (f *Flow) next() *task {
	if f.queued == 0 {
		return nil
	}
	now := time.Now()
	f.turn++
	for i := range f.queues {
		q := f.queues[(i+f.turn)%len(f.queues)]
		if q == nil || q.asked {
			continue
		}
		for {
			h := q.choose(now)
			if h == nil {
				break
			}
			t := (*h)[0]
			runs := t.e.waits && t.e.ord < f.limit.Load() // else a worker has the record, or it never runs again
			if runs && q.gate != nil {
				var ok bool
				if t.call, ok = q.gate.take(q, t.tries == 0, now); !ok {
					break
				}
			}
			heap.Pop(h)
			f.queued--
			t.state = idle
			if !runs {
				continue
			}
			q.turns++
			if h != &q.fresh {
				q.turns = 0
			}
			if h == &q.retried {
				q.beginRetry(t.call)
			}
			return t
		}
	}
	return nil
}

// choose returns the heap whose first task is next, or nil.
func (q *queue) choose(now time.Time) *tasks {
	var again *tasks
	if q.retried.due(now) && !q.manyRetries(now) {
		again = &q.retried
	}
	if q.refused.due(now) && (again == nil || q.refused[0].when.Before(q.retried[0].when)) {
		again = &q.refused
	}
	if len(q.fresh) > 0 && (again == nil || q.turns < freshTurns) {
		return &q.fresh
	}
	return again
}

func (h tasks) due(now time.Time) bool { return len(h) > 0 && !now.Before(h[0].when) }

// manyRetries reports whether retries have their part of the flow's slots, or of the
// route's limit. A retry that hangs for longer than the longest backoff takes no part
// of the limit any more: a handler that never returns must not stop all retries.
func (q *queue) manyRetries(now time.Time) bool {
	if q.gate == nil || q.retrying == 0 || q.gate.paces.Load() {
		return false
	}
	if q.flow.retrying >= q.flow.opts.Concurrency/retryPart {
		return true
	}
	limit := int(q.gate.limit.Load())
	if limit == 0 {
		return false
	}
	recent, until := 0, time.Time{}
	for _, c := range q.retries {
		if hangs := c.retryAt.Add(q.gate.maxBackoff); c.turn && now.Before(hangs) {
			if recent++; until.IsZero() {
				until = hangs
			}
		}
	}
	if recent < max(1, limit/retryPart) {
		return false
	}
	q.flow.clock.arm(until)
	return true
}

// offer is called by q's gate: a call may start.
func (f *Flow) offer(q *queue) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q.asked = false
	if !f.over {
		f.start()
	}
}

// beginRetry counts a retry in. The flow's mu is held.
func (q *queue) beginRetry(c *call) {
	if c != nil {
		c.retry, c.retryAt = q, time.Now()
		q.retries = append(q.retries, c)
		q.countRetry(c, 1)
	}
}

// countRetry has a retry take a slot (1), or give it back (-1).
func (q *queue) countRetry(c *call, n int) {
	c.turn = n > 0
	q.retrying += n
	q.flow.retrying += n
}

// endRetry counts a retry out. mu is held.
func (f *Flow) endRetry(c *call) {
	if c == nil || c.retry == nil {
		return
	}
	q := c.retry
	if c.turn {
		q.countRetry(c, -1)
	}
	i := slices.Index(q.retries, c)
	q.retries = slices.Delete(q.retries, i, i+1)
	c.retry = nil
}

// retrySleeps has a retry that begins to wait in a sink give back its slot (-1),
// and take it again when it was woken (1).
func (f *Flow) retrySleeps(c *call, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.retry != nil && c.turn == (n < 0) {
		c.retry.countRetry(c, n)
	}
}

// doomOld has those parked that became too old as they waited, and tells the
// clock of the next. mu is held.
func (f *Flow) doomOld(now time.Time) {
	for e := range f.held {
		for _, t := range e.tasks {
			if t.state != queued || t.doomed || t.expires.IsZero() {
				continue
			}
			if !t.tooOld(now) {
				f.clock.expire(t.expires)
				continue
			}
			if t.failure.Last == nil { // it was never called
				err := t.gate.trouble()
				if err == nil { // for a limit, not for a failure
					f.clock.expire(t.expires)
					continue
				}
				t.note(err, now)
			}
			f.unqueue(t)
			t.doom()
			f.enqueue(t)
		}
	}
}

// unqueue takes t out of its queue. mu is held.
func (f *Flow) unqueue(t *task) {
	heap.Remove(f.queue(t.gate).heap(t), t.place)
	f.queued--
	t.state = idle
}
