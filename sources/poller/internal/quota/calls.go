package quota

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// yields is the time for which a shard with a backlog lets others go first. A
// shard has at most one waiting call, so turns are even.
const yields = 200 * time.Millisecond

// calls spaces the GetRecords calls for the shards of one table.
type calls struct {
	every time.Duration // from call to call
	early time.Duration // how early calls may follow one another

	mu     sync.Mutex
	due    time.Time    // of the next call
	queues [2]list.List // of turns: shards without a backlog, shards with one
	timer  *time.Timer
}

// turn is a shard's place in line. One reader uses it.
type turn struct {
	ready chan struct{} // has room for one
	by    time.Time     // rank among both queues
	queue *list.List
	place *list.Element // nil: it does not wait
}

func newCalls(rate int) *calls {
	every := time.Second / time.Duration(rate)
	return &calls{every: every, early: max(0, time.Second/50-every)}
}

func newTurn() *turn { return &turn{ready: make(chan struct{}, 1)} }

// wait blocks until t may call, or returns ctx's error.
func (c *calls) wait(ctx context.Context, t *turn, backlog bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := time.Now()
	t.by, t.queue = now, &c.queues[0]
	if backlog {
		t.by, t.queue = now.Add(yields), &c.queues[1]
	}
	c.mu.Lock()
	t.place = t.queue.PushBack(t)
	c.serve(now)
	c.mu.Unlock()
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.place != nil {
		t.leave()
	} else {
		<-t.ready // its turn is lost
	}
	return ctx.Err()
}

// try reports whether a call may start now, because no shard waits.
func (c *calls) try() bool {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.head() != nil || c.due.Add(-c.early).After(now) {
		return false
	}
	c.count(now)
	return true
}

// serve admits the shards whose turn it is at now. mu is held.
func (c *calls) serve(now time.Time) {
	for {
		t := c.head()
		if t == nil {
			return
		}
		if in := c.due.Add(-c.early).Sub(now); in > 0 {
			c.wake(in)
			return
		}
		c.count(now)
		t.leave()
		t.ready <- struct{}{}
	}
}

// count notes a call made now.
func (c *calls) count(now time.Time) {
	if c.due.Before(now) {
		c.due = now
	}
	c.due = c.due.Add(c.every)
}

// head returns the next turn, or nil.
func (c *calls) head() *turn {
	var next *turn
	for i := range c.queues {
		if e := c.queues[i].Front(); e != nil {
			if t := e.Value.(*turn); next == nil || t.by.Before(next.by) {
				next = t
			}
		}
	}
	return next
}

func (t *turn) leave() {
	t.queue.Remove(t.place)
	t.place = nil
}

func (c *calls) wake(in time.Duration) {
	if c.timer == nil {
		c.timer = time.AfterFunc(in, c.tick)
	} else {
		c.timer.Reset(in)
	}
}

func (c *calls) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serve(time.Now())
}
