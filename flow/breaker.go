package flow

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// breakAfter is how many calls of a route fail one after another, with no
// success between them and for two items at least, before its breaker opens.
const breakAfter = 5

// outcome is what a call tells about its route.
type outcome uint8

const (
	// neutral: skipped, failed for good, or cut off. None of it says that the
	// route works, nor that it does not.
	neutral outcome = iota
	succeeded
	failed
)

// breaker tells a record that fails from a route that fails. Its plain fields
// belong to the gate's mu.
type breaker struct {
	open atomic.Bool
	ok   atomic.Bool // the route has succeeded since it last failed; written under mu

	times    uint64 // how often ok has become true
	streak   int    // failures since then
	item     uint64 // of the streak's first failure
	several  bool   // the streak is of several items
	since    time.Time
	err      error
	probeAt  time.Time // no probe starts before
	probe    uint64    // number of the last probe
	failures int       // of probes, one after another
}

// Outage is a route that fails for every record.
type Outage struct {
	Route string
	Since time.Time
	Err   error // of the last call
}

// Outages lists the routes whose breaker is open.
func (g *Group) Outages() []Outage {
	var out []Outage
	for _, gt := range g.gates {
		gt.mu.Lock()
		if gt.breaker.open.Load() {
			out = append(out, Outage{Route: gt.route.Name, Since: gt.breaker.since, Err: gt.breaker.err})
		}
		gt.mu.Unlock()
	}
	return out
}

// startProbe numbers a probe and keeps others off for patience: a probe that
// does not come back must not keep them off for ever.
func (b *breaker) startProbe(now time.Time, patience time.Duration) uint64 {
	b.probe++
	b.probeAt = now.Add(patience)
	return b.probe
}

// endProbe says when the next one may start.
func (b *breaker) endProbe(probe uint64, how outcome, now time.Time, backoff, maxBackoff time.Duration) {
	if probe != b.probe || !b.open.Load() {
		return
	}
	if how == neutral {
		b.probeAt = now
		return
	}
	d := doubled(backoff, maxBackoff, b.failures)
	b.failures++
	b.probeAt = now.Add(d/2 + rand.N(d/2+1))
}

// succeeded notes that a call of the route succeeded; it reports whether that
// closed the breaker. Nothing is written while nothing fails.
func (g *gate) succeeded() (closed bool) {
	b := &g.breaker
	if b.ok.Load() {
		return false
	}
	g.mu.Lock()
	b.ok.Store(true)
	b.times++
	b.streak, b.several, b.failures = 0, false, 0
	closed = b.open.Swap(false)
	if closed {
		b.err = nil
	}
	g.mu.Unlock()
	if closed {
		g.pump()
	}
	return closed
}

// failed notes that a call for t failed. counts says whether the failure
// counts against the record: the route has succeeded for another one since
// t's previous failure, or for t's first one, since its own last failure.
func (g *gate) failed(t *task, err error) (counts, opened, open bool) {
	b := &g.breaker
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.failure.Attempts == 0 {
		counts = b.ok.Load()
	} else {
		counts = t.seen != b.times
	}
	t.seen = b.times
	b.ok.Store(false)
	b.err = err
	if b.streak == 0 {
		b.item = t.e.hash
	} else if b.item != t.e.hash || t.e.alone {
		b.several = true
	}
	b.streak++
	if !b.open.Load() && b.streak >= breakAfter && b.several {
		now := time.Now()
		b.since, b.failures = now, 1
		b.probeAt = now.Add(g.backoff/2 + rand.N(g.backoff/2+1))
		b.open.Store(true)
		opened = true
	}
	return counts, opened, b.open.Load()
}

// doubled is base doubled n times, at most limit.
func doubled(base, limit time.Duration, n int) time.Duration {
	if n > 62 || base > limit>>n {
		return limit
	}
	return base << n
}

// jittered is a random delay before retry n (from 0), with full jitter.
func jittered(base, limit time.Duration, n int) time.Duration {
	return rand.N(doubled(base, limit, n) + 1)
}

// outage returns the error of the last call while the breaker is open.
func (g *gate) outage() error {
	if !g.breaker.open.Load() {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.breaker.err
}
