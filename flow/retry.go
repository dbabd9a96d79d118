package flow

import (
	"container/heap"
	"time"
)

// clock is the one timer of a flow: for retries, the deadline's margin and the
// watch over handlers. It belongs to the flow's mu.
type clock struct {
	timer    *time.Timer
	fire     func()
	at       time.Time // it fires then; zero: it does not
	retries  retries
	marginAt time.Time
	watchAt  time.Time
}

// arm has the clock fire at t at the latest.
func (c *clock) arm(t time.Time) {
	if t.IsZero() || !c.at.IsZero() && !t.Before(c.at) {
		return
	}
	c.at = t
	if c.timer == nil {
		c.timer = time.AfterFunc(time.Until(t), c.fire)
	} else {
		c.timer.Reset(time.Until(t))
	}
}

func (c *clock) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
}

// retries is a heap of tasks in backoff, the next one first.
type retries []*task

func (r retries) Len() int           { return len(r) }
func (r retries) Less(i, j int) bool { return r[i].when.Before(r[j].when) }
func (r retries) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *retries) Push(t any)        { *r = append(*r, t.(*task)) }
func (r *retries) Pop() any {
	old := *r
	last := len(old) - 1
	t := old[last]
	old[last] = nil
	*r = old[:last]
	return t
}

// backOff makes t due at the time when. mu is held.
func (f *Flow) backOff(t *task, when time.Time) {
	t.state, t.when = backing, when
	heap.Push(&f.clock.retries, t)
	f.clock.arm(when)
}

// tick is called by the clock.
func (f *Flow) tick() {
	f.mu.Lock()
	c := &f.clock
	if f.over {
		f.mu.Unlock()
		return
	}
	f.ticks.Add(1)
	defer f.ticks.Done()
	c.at = time.Time{}
	now := time.Now()
	if !c.marginAt.IsZero() && !now.Before(c.marginAt) {
		c.marginAt = time.Time{}
		f.stop(0, ErrDeadline)
	}
	for len(c.retries) > 0 && !now.Before(c.retries[0].when) {
		t := heap.Pop(&c.retries).(*task)
		t.state = due
		f.wake(t.e)
	}
	stuck := f.patrol(now)
	if len(c.retries) > 0 {
		c.arm(c.retries[0].when)
	}
	c.arm(c.marginAt)
	c.arm(c.watchAt)
	f.mu.Unlock()
	for _, s := range stuck {
		f.report(s)
	}
}
