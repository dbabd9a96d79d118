//go:build integration || long

package flow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// A sink that refuses what is above its capacity gets as much as it can take,
// and nothing is parked.
func TestWildOverload(t *testing.T) {
	const records = 3000
	for _, n := range []int{1, 2, 4, 8, 16, 32} {
		s := scene{capacity: func(time.Duration) int { return n }}
		ideal := records / time.Duration(n) * 10 * time.Millisecond
		wild(t, fmt.Sprintf("capacity %d", n), s, func(w *world) {
			w.burst(records, records)
			w.within("time for all", w.end().last, 2*ideal)
		})
		// A plain error does not say that it is overload: the flow has to find
		// out, which may take longer.
		s.refusal = errPlain
		wild(t, fmt.Sprintf("capacity %d, plain errors", n), s, func(w *world) {
			w.burst(records, records)
			w.within("time for all", w.end().last, 10*ideal+time.Minute)
		})
	}
}

// The sink says when to come back. That is a wish of the refused record: the flow
// lowers its pace as for any other refusal.
func TestWildOverloadWithRetryAfter(t *testing.T) {
	const records = 3000
	s := scene{capacity: func(time.Duration) int { return 4 }, refusal: sluice.RetryAfter(time.Second, errRefused)}
	wild(t, "capacity 4", s, func(w *world) {
		w.burst(records, records)
		w.within("time for all", w.end().last, 2*records/4*10*time.Millisecond)
	})
}

// Records arrive at three quarters of what the sink can take, after a burst
// that sends the flow above the sink's capacity. The backlog of the burst goes,
// and then nothing waits.
func TestWildOverloadSettles(t *testing.T) {
	for _, c := range []struct{ capacity, rate int }{{4, 300}, {16, 1200}} {
		if c.capacity == 16 && !proof {
			continue
		}
		s := scene{capacity: func(time.Duration) int { return c.capacity }}
		wild(t, fmt.Sprintf("capacity %d at %d a second", c.capacity, c.rate), s, func(w *world) {
			w.burst(1000, 1000)
			w.traffic(c.rate, 1000, time.Minute)
			w.end()
			w.within("p99 of the second half minute", w.healthy(30*time.Second, time.Minute).p99, time.Second)
		})
	}
}

// The sink's capacity falls to a tenth for two minutes, and comes back.
func TestWildOverloadForAWhile(t *testing.T) {
	s := scene{latency: 50 * time.Millisecond, capacity: func(at time.Duration) int {
		if at > 30*time.Second && at < 150*time.Second {
			return 4
		}
		return 40
	}}
	for _, rate := range []int{60, 120} { // 120 is more than the tenth can take
		wild(t, fmt.Sprintf("at %d a second", rate), s, func(w *world) {
			w.traffic(rate, 1000, 5*time.Minute)
			w.end()
			if rate < 80 {
				w.within("p99 with little capacity", w.healthy(40*time.Second, 150*time.Second).p99, time.Second)
			}
			w.within("p99 afterwards", w.healthy(4*time.Minute, 5*time.Minute).p99, time.Second)
		})
	}
}
