package flow

import "time"

// expireEvery is the least time between two scans for old records.
const expireEvery = time.Second

// clock is the single timer of a flow. It drives retries, expiry, the deadline's
// margin and the watch over handlers. The flow's mu guards it.
type clock struct {
	timer    *time.Timer
	fire     func()
	at       time.Time // next firing; zero: none
	marginAt time.Time
	watchAt  time.Time
	expireAt time.Time
}

// arm makes the clock fire at t or earlier.
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

// expire makes the clock scan for old records at t or earlier.
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

// tick runs when the clock fires.
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
