package flow

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/backoff"
)

const (
	outageAfter    = 2 * time.Second   // time without a success
	outageFailures = 5                 // failures in that time
	outageItems    = failingAlways + 1 // distinct failing items in that time: fewer may be poison
	rampFailures   = 32                // failures in that time after an outage, even of records that failed before
	quietAfter     = time.Minute       // time without a success, when only records fail that failed before
	rampIdle       = time.Second       // a ramp ends when it makes no call wait for this time
	partialAtLeast = time.Minute       // least time of a partial outage: keeps its end from flapping
)

// streak is a run of failures without a success.
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

// lasts reports whether every item fails, for d or longer.
func (s *streak) lasts(d time.Duration, now time.Time) bool {
	return s.n >= outageFailures && s.known == outageItems && now.Sub(s.since) >= d
}

// outage paces the probes of a route for which nothing succeeds.
type outage struct {
	on       bool
	number   int
	width    int       // probes at a time; grows while probes say nothing about the route
	probes   int       // running probes
	failures int       // consecutive failed probes
	probeAt  time.Time // no probe starts before
}

// quiet is the longest time without a success while only records fail that failed
// before. After an outage nearly all waiting records have failed. If a limit then
// keeps them back and the route fails again, that is no pause between two bursts.
func (g *gate) quiet() time.Duration {
	if g.ramps && g.streak.n >= rampFailures {
		return outageAfter
	}
	return quietAfter
}

// pace sets the time of the next probe after a failed probe.
func (g *gate) pace(now time.Time) {
	o := &g.outage
	o.failures++
	o.width = 1
	o.probeAt = now.Add(backoff.Half(g.backoff, min(g.maxBackoff, maxPause), o.failures))
}
