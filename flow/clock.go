package flow

import "time"

// expireEvery is the least time between two looks at who is too old.
const expireEvery = time.Second

// clock is the one timer of a flow: for retries, for what becomes too old, the
// deadline's margin and the watch over handlers. It belongs to the flow's mu.
type clock struct {
	timer    *time.Timer
	fire     func()
	at       time.Time // it fires then; zero: it does not
	marginAt time.Time
	watchAt  time.Time
	expireAt time.Time
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

// expire has the clock look for what is too old at t at the latest.
func (c *clock) expire(t time.Time) {
	if c.expireAt.IsZero() || t.Before(c.expireAt) {
		c.expireAt = t
		c.arm(t)
	}
}

func (c *clock) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
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
		f.stop(0, errDeadline)
	}
	if !c.expireAt.IsZero() && !now.Before(c.expireAt) {
		c.expireAt = time.Time{}
		f.doomOld(now)
		if !c.expireAt.IsZero() {
			c.expireAt = later(c.expireAt, now.Add(expireEvery))
		}
	}
	f.start()
	stuck := f.patrol(now)
	for _, q := range f.queues {
		if q == nil {
			continue
		}
		for _, h := range []tasks{q.retried, q.refused} {
			if len(h) > 0 && !h.due(now) {
				c.arm(h[0].when)
			}
		}
	}
	c.arm(c.expireAt)
	c.arm(c.marginAt)
	c.arm(c.watchAt)
	f.mu.Unlock()
	for _, s := range stuck {
		f.report(s)
	}
}
