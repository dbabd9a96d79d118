//go:build integration || long

package flow_test

import (
	"fmt"
	"testing"
	"time"
)

const (
	poisonFrom = time.Minute
	poisonPark = 15 * time.Minute
)

// Up to three records can never be handled. They are parked in time, nothing
// else is, and neighbours do not notice.
func TestWildPoison(t *testing.T) {
	rates := []int{20, 50}
	if proof {
		rates = []int{20, 200}
	}
	for _, rate := range rates {
		for _, items := range []int{1, 3} {
			if rate == 50 && items == 1 {
				continue
			}
			poison := func(f *fate) bool { return f.item < items && f.nth == 2 }
			wild(t, fmt.Sprintf("%d records at %d a second", items, rate), poisoned(items, poison), func(w *world) {
				w.traffic(rate, rate*50, 20*time.Minute) // each item changes once in 50 s
				w.wantPoison(items)
			})
		}
	}
}

// An item that changes 7 times a second has one record that can never be
// handled. Its later changes wait for that one alone.
func TestWildPoisonOfAHotItem(t *testing.T) {
	for _, rate := range []int{20, 200} {
		if rate == 200 && !proof {
			continue
		}
		nth := int(poisonFrom.Seconds()) * 7
		poison := func(f *fate) bool { return f.item == 0 && f.nth == nth }
		wild(t, fmt.Sprintf("at %d a second", rate), poisoned(1, poison), func(w *world) {
			w.trafficOf(rate, 20*time.Minute, hot(rate))
			fig := w.wantPoison(1)
			w.within("time for what waited behind it", fig.settled, 20*time.Minute+time.Minute)
		})
	}
}

// Every change of an item that changes 7 times a second fails, until someone
// mends what reads it.
func TestWildPoisonedHotItem(t *testing.T) {
	const mended = 30 * time.Minute
	s := poisoned(1, nil)
	s.bad = func(f *fate) bool { return f.item == 0 }
	s.answer = func(at time.Duration, f *fate) error {
		if f.item == 0 && at > poisonFrom && at < mended {
			return errBroken
		}
		return nil
	}
	wild(t, "mended after half an hour", s, func(w *world) {
		w.trafficOf(20, mended+5*time.Minute, hot(20))
		fig := w.end()
		if fig.parkedBad == 0 {
			w.t.Errorf("no record of the poisoned item parked")
		}
		w.within("longest from a first failure to the parking", fig.wait, poisonPark)
		w.unaffected()
	})
}

// The sink also fails one request in so many, whatever its record. That keeps no
// good record and no neighbour; whether the poison is parked is left open, as it
// cannot be told from a partial outage when many items fail.
func TestWildPoisonInNoise(t *testing.T) {
	const mended = 30 * time.Minute
	for _, one := range []int{1000, 100} {
		if one == 1000 && !proof {
			continue
		}
		poison := func(f *fate) bool { return f.item == 0 && f.nth == 2 }
		s, n := poisoned(1, poison), 0
		s.answer = func(at time.Duration, f *fate) error {
			if poison(f) && at < mended {
				return errBroken
			}
			if n++; n%one == 0 {
				return errPlain
			}
			return nil
		}
		wild(t, fmt.Sprintf("1 request in %d", one), s, func(w *world) {
			w.traffic(20, 20*50, mended+2*time.Minute)
			fig := w.end()
			w.say("%d poison parked, at most %v after a first failure", fig.parkedBad, short(fig.wait))
			w.within("healthy p99", fig.healthy.p99, 200*time.Millisecond)
		})
	}
}

// A record of an item that changes often is poison. From the moment when the next
// one is called everything fails for a while, with nothing wrong with any record:
// none of them is parked for that.
func TestWildBlipBehindPoison(t *testing.T) {
	for _, blip := range []time.Duration{time.Second, 2 * time.Second, time.Minute} {
		for _, rate := range []int{8, 20} {
			poison := func(f *fate) bool { return f.item == 0 && f.nth == int(poisonFrom.Seconds())*7 }
			s, from := poisoned(1, poison), time.Duration(0)
			s.answer = func(at time.Duration, f *fate) error {
				switch {
				case poison(f):
					return errBroken
				case from == 0 && f.item == 0 && f.nth > int(poisonFrom.Seconds())*7:
					from = at
				}
				if from != 0 && at-from < blip {
					return errPlain
				}
				return nil
			}
			wild(t, fmt.Sprintf("of %v, at %d a second", blip, rate), s, func(w *world) {
				w.trafficOf(rate, 15*time.Minute, hot(rate))
				fig := w.end()
				if fig.parkedBad != 1 {
					w.t.Errorf("%d poison records parked, want 1", fig.parkedBad)
				}
			})
		}
	}
}

// hot is traffic of which item 0 has 7 records a second.
func hot(rate int) func(n int) int {
	before := 0
	return func(n int) int {
		if due := n * 7 / rate; due != before {
			before = due
			return 0
		}
		return 1 + n%(rate*10)
	}
}

// poisoned is a sink with ordinary latencies that fails for poison alone. The
// first items hold it.
func poisoned(items int, poison func(f *fate) bool) scene {
	return scene{
		affected: func(item int) bool { return item < items },
		bad:      poison,
		wait: func(_ time.Duration, f *fate) time.Duration {
			return time.Duration(f.nth*7919+f.item*104729) % 40 * time.Millisecond
		},
		answer: func(_ time.Duration, f *fate) error {
			if poison(f) {
				return errBroken
			}
			return nil
		},
	}
}

// wantPoison ends the scenario and holds what was parked, and when.
func (w *world) wantPoison(n int) figures {
	w.t.Helper()
	fig := w.end()
	if fig.parkedBad != n {
		w.t.Errorf("%d poison records parked, want %d", fig.parkedBad, n)
	}
	w.within("longest from a first failure to the parking", fig.wait, poisonPark)
	w.unaffected()
	return fig
}

// unaffected holds that healthy items fare as before the poison came.
func (w *world) unaffected() {
	w.t.Helper()
	before, with := w.healthy(0, poisonFrom), w.healthy(poisonFrom, w.at())
	w.say("healthy p50 %v before the poison", short(before.p50))
	w.within("healthy p99", with.p99, 2*before.p99)
}
