//go:build integration || long

package flow_test

import (
	"fmt"
	"testing"
	"time"
)

const bulkSize = 100 // of a batch.Batcher with default Options

// The same through a batching sink: a request is a bulk.
func TestWildBulkOverload(t *testing.T) {
	const (
		records = 6000
		latency = 50 * time.Millisecond
	)
	for _, n := range []int{1, 2} { // bulks at a time; the batcher sends 4
		s := scene{bulks: true, latency: latency, capacity: func(time.Duration) int { return n }}
		wild(t, fmt.Sprintf("capacity %d", n), s, func(w *world) {
			w.burst(records, records)
			ideal := records / bulkSize * latency / time.Duration(n)
			w.within("time for all", w.end().last, 2*ideal+time.Second)
			if mean := w.taken / w.requests; mean < bulkSize/2 {
				w.t.Errorf("%d records a bulk, want %d at least", mean, bulkSize/2)
			} else {
				w.say("%d records a bulk", mean)
			}
		})
	}
}

func TestWildBulkOutage(t *testing.T) {
	const (
		records = 20_000
		outage  = 5 * time.Minute
	)
	s := scene{
		bulks:   true,
		latency: 50 * time.Millisecond,
		answer: func(at time.Duration, _ *fate) error {
			if at > 0 && at < outage {
				return errPlain
			}
			return nil
		},
		capacity: func(at time.Duration) int {
			if at < outage+30*time.Second {
				return 1
			}
			return 4
		},
	}
	wild(t, "5 min, then a quarter", s, func(w *world) {
		w.burst(records, records)
		// A quarter is 2,000 records a second; a probe comes every 30 s at least.
		w.within("time to catch up", w.end().last-outage, 20*time.Second+30*time.Second)
	})
}

func TestWildBulkPartialOutage(t *testing.T) {
	for _, share := range []int{2, 20} {
		for _, rate := range []int{20, 200, 2000} {
			d := 2 * time.Minute
			if rate > 20 && !proof {
				continue
			}
			if rate == 2000 {
				d = 15 * time.Second
			}
			partial(t, fmt.Sprintf("1 in %d for %v at %d a second", share, d, rate), rate, share, d,
				rate*int(d.Seconds())/share <= heldBudget, scene{bulks: true})
		}
	}
}

func TestWildBulkPoison(t *testing.T) {
	poison := func(f *fate) bool { return f.item < 3 && f.nth == 2 }
	s := poisoned(3, poison)
	s.bulks = true
	wild(t, "3 records at 20 a second", s, func(w *world) {
		w.traffic(20, 20*50, 20*time.Minute)
		w.wantPoison(3)
	})
}
