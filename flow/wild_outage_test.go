//go:build integration || long

package flow_test

import (
	"fmt"
	"testing"
	"time"
)

// A sink of 64 requests at a time is down, and comes back with a tenth of its
// capacity, then with half, then with all of it. Nothing is parked, and what
// waits is settled not much later than the sink allows.
func TestWildOutage(t *testing.T) {
	const (
		latency = 50 * time.Millisecond
		start   = 5 * time.Second
		step    = 30 * time.Second
		records = 40_000
	)
	for _, outage := range []time.Duration{10 * time.Second, 5 * time.Minute, 30 * time.Minute} {
		end := start + outage
		s := scene{
			latency: latency,
			answer: func(at time.Duration, _ *fate) error {
				if at > start && at < end {
					return errPlain
				}
				return nil
			},
			capacity: func(at time.Duration) int {
				switch {
				case at < end:
					return 64
				case at < end+step:
					return 6
				case at < end+2*step:
					return 32
				}
				return 64
			},
		}
		perSecond := func(slots int) time.Duration { return time.Duration(slots) * time.Second / latency }
		left := records - 5*perSecond(64) - 30*perSecond(6) - 30*perSecond(32)
		ideal := 2*step + left*time.Second/perSecond(64)

		for name, refusal := range map[string]error{"": errRefused, ", plain errors": errPlain} {
			if !proof && (outage != 5*time.Minute || refusal == errPlain) {
				continue
			}
			s.refusal = refusal
			wild(t, fmt.Sprintf("%v with a backlog%s", outage, name), s, func(w *world) {
				w.burst(records, records)
				// A probe comes every 30 s at least.
				w.within("time to catch up", w.end().last-end, 2*ideal+30*time.Second)
			})
		}
		rate := 20
		if outage < 10*time.Minute {
			rate = 100
			if proof {
				rate = 320 // a quarter of the capacity: the backlog of 5 min takes 2 min
			}
		}
		wild(t, fmt.Sprintf("%v at %d a second", outage, rate), s, func(w *world) {
			w.traffic(rate, 1000, end+6*time.Minute)
			w.end()
			w.within("p99 of the last minute", w.healthy(end+5*time.Minute, end+6*time.Minute).p99, time.Second)
		})
	}
}

// An outage that is longer than the stream keeps records: what would be lost is
// parked before, and what came late enough is not.
func TestWildOutageBeyondTheTrim(t *testing.T) {
	end := 26 * time.Hour
	s := scene{
		answer: func(at time.Duration, _ *fate) error {
			if at < end {
				return errPlain
			}
			return nil
		},
		bad: func(f *fate) bool { return f.due < end-18*time.Hour },
	}
	wild(t, "26 h", s, func(w *world) {
		for range 13 {
			w.burst(100, 100)
			time.Sleep(2 * time.Hour)
		}
		w.end()
	})
}
