package flow

import (
	"math/rand/v2"
	"slices"
	"time"
)

const (
	outageAfter    = 2 * time.Second   // without a success
	outageFailures = 5                 // in that time
	outageItems    = failingAlways + 1 // distinct ones that fail in that time: fewer may be poison
	rampFailures   = 32                // so many in that time after an outage, though of records that failed before
	quietAfter     = time.Minute       // without a success, when only records fail that failed before
	rampIdle       = time.Second       // a ramp that keeps nobody waiting for so long is over
	partialAtLeast = time.Minute       // a partial outage lasts, so that its end is not told too often
)

// streak is failures with no success in between.
type streak struct {
	n     int
	since time.Time
	items [outageItems]uint64
	known int // of items
}

func (s *streak) add(hash uint64, now time.Time) {
	if s.n == 0 {
		s.since = now
	}
	s.n++
	if s.known < len(s.items) && !slices.Contains(s.items[:s.known], hash) {
		s.items[s.known] = hash
		s.known++
	}
}

// lasts reports whether they are failures of all, for d or longer.
func (s *streak) lasts(d time.Duration, now time.Time) bool {
	return s.n >= outageFailures && s.known == outageItems && now.Sub(s.since) >= d
}

// outage paces the probes of a route for which nothing succeeds.
type outage struct {
	on       bool
	number   int
	width    int       // probes at a time; grows while they say nothing about the route
	probes   int       // that run
	failures int       // one after another
	probeAt  time.Time // none starts before
}

// quiet is for how long nothing may succeed while only records fail that failed
// before. After an outage nearly all that wait have failed: when the route fails
// again while a limit keeps them back, that is no pause between two bursts.
func (g *gate) quiet() time.Duration {
	if g.ramps && g.streak.n >= rampFailures {
		return outageAfter
	}
	return quietAfter
}

// pace says when the next probe may start after one that failed.
func (g *gate) pace(now time.Time) {
	o := &g.outage
	d := doubled(g.backoff, min(g.maxBackoff, maxPause), o.failures)
	o.failures++
	o.width = 1
	o.probeAt = now.Add(d/2 + rand.N(d/2+1))
}
