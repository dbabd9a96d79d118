package flow

import (
	"slices"
	"time"
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
