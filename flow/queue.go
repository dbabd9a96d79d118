package flow

import (
	"container/heap"
	"slices"
	"time"
)

// retryPart divides a flow's slots, and its route's limit: retries may use one
// part, so that they do not crowd out other records. Records refused for load are
// no retries here: the limit paces them. Each route may always run one retry, so
// that hanging retries do not block those of another route. In an outage and after
// it the route paces all calls itself.
const retryPart = 4

// freshTurns is the number of records that were never tried that run before one
// retry, when both wait.
const freshTurns = 3

// queue is the tasks of one route that wait in a flow: for the time of their next
// try, for their gate, or for a slot. The queue of the dead letters has no gate.
// The flow's mu guards it.
type queue struct {
	flow     *Flow
	gate     *gate
	fresh    tasks   // never called, in stream order
	retried  tasks   // by the time of their next try
	refused  tasks   // the same, after a refusal for load
	turns    int     // fresh tasks run since the last retry
	retrying int     // part of Flow.retrying
	retries  []*call // running retries, in the order of their start
	asked    bool    // registered with its gate for waking
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

// heap returns the heap for t.
func (q *queue) heap(t *task) *tasks {
	switch {
	case t.when.IsZero():
		return &q.fresh
	case t.refused:
		return &q.refused
	}
	return &q.retried
}

// enqueue makes t wait. mu is held.
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

// next removes a task that can run now. mu is held.
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
			runs := t.e.waits && t.e.ord < f.limit.Load() // else a worker has the record, or the record never runs again
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

// choose returns the heap with the next task, or nil.
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

// manyRetries reports whether retries use up their part of the flow's slots or of
// the route's limit. A retry that runs for longer than the longest backoff no
// longer counts for the limit: a hanging handler must not stop all retries.
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

// offer runs when q's gate can let a call through.
func (f *Flow) offer(q *queue) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q.asked = false
	if !f.over {
		f.start()
	}
}

// beginRetry counts the start of a retry. The flow's mu is held.
func (q *queue) beginRetry(c *call) {
	if c != nil {
		c.retry, c.retryAt = q, time.Now()
		q.retries = append(q.retries, c)
		q.countRetry(c, 1)
	}
}

// countRetry takes (1) or gives back (-1) a slot for a retry.
func (q *queue) countRetry(c *call, n int) {
	c.turn = n > 0
	q.retrying += n
	q.flow.retrying += n
}

// endRetry counts the end of a retry. mu is held.
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

// retrySleeps gives back the slot of a retry that starts to wait in a sink (-1),
// and takes it again when the retry wakes (1).
func (f *Flow) retrySleeps(c *call, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.retry != nil && c.turn == (n < 0) {
		c.retry.countRetry(c, n)
	}
}

// doomOld parks tasks that became too old while they waited, and arms the clock
// for the next. mu is held.
func (f *Flow) doomOld(now time.Time) {
	for e := range f.held {
		for _, t := range e.tasks {
			if t.state != queued || t.doomed || t.expires.IsZero() || t.paused() {
				continue
			}
			if !t.tooOld(now) {
				f.clock.expire(t.expires)
				continue
			}
			if t.failure.Last == nil { // never called
				err := t.gate.trouble()
				if err == nil { // it waits for a limit, not after a failure
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

// unqueue removes t from its queue. mu is held.
func (f *Flow) unqueue(t *task) {
	heap.Remove(f.queue(t.gate).heap(t), t.place)
	f.queued--
	t.state = idle
}
