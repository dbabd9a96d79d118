//go:build integration || long

package flow_test

import (
	"fmt"
	"testing"
	"time"
)

// The process was down for most of a day. What it then reads is old, and meets an
// outage: it gets as many retries as the time left before the trim allows.
func TestWildOldRecords(t *testing.T) {
	const records = 5000
	for _, c := range []struct {
		age, outage time.Duration
	}{
		{20*time.Hour + 30*time.Minute, 10 * time.Second},
		{20*time.Hour + 30*time.Minute, 5 * time.Minute},
		{23 * time.Hour, 10 * time.Second},
		{23 * time.Hour, 5 * time.Minute},
	} {
		s := scene{age: c.age, answer: func(at time.Duration, _ *fate) error {
			if at < c.outage {
				return errPlain
			}
			return nil
		}}
		wild(t, fmt.Sprintf("%v old in an outage of %v", c.age, c.outage), s, func(w *world) {
			w.burst(records, records)
			// A probe comes every 30 s at least.
			w.within("time to catch up", w.end().last-c.outage, time.Minute)
		})
	}
	s := scene{age: 20*time.Hour + 30*time.Minute, capacity: func(time.Duration) int { return 4 }}
	wild(t, "20 h 30 min old before a sink of capacity 4", s, func(w *world) {
		w.burst(records, records)
		w.within("time for all", w.end().last, 2*records/4*10*time.Millisecond)
	})
}

// Our own clock is hours wrong. Records that only look old are retried as new ones.
func TestWildWrongClock(t *testing.T) {
	for _, wrong := range []time.Duration{25 * time.Hour, -25 * time.Hour} {
		s := scene{age: wrong, ahead: wrong, answer: func(at time.Duration, _ *fate) error {
			if at < 2*time.Second {
				return errPlain
			}
			return nil
		}}
		wild(t, fmt.Sprintf("by %v", wrong), s, func(w *world) {
			w.burst(1200, 1200)
			w.within("time for all", w.end().last, time.Minute)
		})
	}
}

// What is about to be lost while the sink is down is parked before.
func TestWildAlmostLost(t *testing.T) {
	const records = 1000
	for _, age := range []time.Duration{21 * time.Hour, 23*time.Hour + 54*time.Minute, 23*time.Hour + 59*time.Minute} {
		s := scene{
			age: age,
			bad: func(*fate) bool { return true },
			answer: func(at time.Duration, _ *fate) error {
				if at < 4*time.Hour {
					return errPlain
				}
				return nil
			},
		}
		wild(t, fmt.Sprintf("%v old", age), s, func(w *world) {
			w.burst(records, records)
			fig := w.end()
			if fig.parkedBad != records {
				w.t.Errorf("%d parked, want all %d: the stream lost them before the sink worked", fig.parkedBad, records)
			}
			left := trim - age
			w.within("last parked", fig.last, left)
			if first := w.firstEnd(); first < left/10 {
				w.t.Errorf("the first is parked after %v, with %v left before the trim", short(first), short(left))
			} else {
				w.say("first parked after %v", short(first))
			}
		})
	}
}

// firstEnd is when the first record was settled or parked.
func (w *world) firstEnd() time.Duration {
	first := 3 * trim
	for _, f := range w.fates {
		first = min(first, f.ended)
	}
	return first
}
