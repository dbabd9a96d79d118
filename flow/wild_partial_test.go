//go:build integration || long

package flow_test

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// What the flow of a default Options can hold: failing records and those behind
// them, and records past the first unsettled one. A partial outage that needs
// more ends the reading for a while.
const (
	heldBudget = 64 << 20 / (500 + 640) // records of 500 bytes, and what is kept beside each
	maxAhead   = 15 * 60 * 1000
)

// One item in so many fails for a while. Nothing is parked, healthy items do not
// notice, and the failing ones are settled soon after the end.
func TestWildPartialOutage(t *testing.T) {
	for _, rate := range []int{20, 200, 2000} {
		for _, share := range []int{2, 5, 20, 100} {
			for _, d := range []time.Duration{2 * time.Second, 2 * time.Minute, 30 * time.Minute} {
				records := rate * int(d.Seconds())
				if !proof && (records > 40_000 || records > 20_000 && share != 5 && share != 100) {
					continue
				}
				name := fmt.Sprintf("1 in %d for %v at %d a second", share, d, rate)
				partial(t, name, rate, share, d, records/share <= heldBudget && records <= maxAhead, scene{})
			}
		}
	}
	if !proof {
		partial(t, "1 in 20 for 10s at 2000 a second", 2000, 20, 10*time.Second, true, scene{})
	}
}

// The failing calls hang until their time-out. They hold slots meanwhile, so
// that healthy items wait when the failing ones need more than there are.
func TestWildPartialOutageHangs(t *testing.T) {
	const timeout = 10 * time.Second
	for _, rate := range []int{20, 200} {
		for _, share := range []int{5, 20} {
			s := scene{timeout: timeout, wait: func(at time.Duration, f *fate) time.Duration {
				if f.item%share == 0 && at > partialStart && at < partialStart+2*time.Minute {
					return timeout - 10*time.Millisecond
				}
				return 0
			}}
			name := fmt.Sprintf("1 in %d for 2 min at %d a second", share, rate)
			slots := rate / share * int(timeout.Seconds()) // of first calls
			partial(t, name, rate, share, 2*time.Minute, slots < 32, s)
		}
	}
}

// A few requests are refused for load beside them, so that the route has learned a
// limit. Retries that hang take a part of it, not all. First calls that hang still
// take the rest: how long healthy items wait depends on the share that hangs.
func TestWildHangsUnderALimit(t *testing.T) {
	const timeout, share = 10 * time.Second, 20
	requests := 0
	s := scene{timeout: timeout, affected: func(item int) bool { return item%share == 0 }}
	hangs := func(at time.Duration, f *fate) bool {
		return s.affected(f.item) && at > partialStart && at < partialStart+2*time.Minute
	}
	s.wait = func(at time.Duration, f *fate) time.Duration {
		if hangs(at, f) {
			return timeout - 10*time.Millisecond
		}
		return 0
	}
	s.answer = func(at time.Duration, f *fate) error {
		switch requests++; {
		case hangs(at, f):
			return context.DeadlineExceeded
		case requests%100 == 0:
			return errRefused
		}
		return nil
	}
	wild(t, "1 in 20 hangs, 1 request in 100 is refused", s, func(w *world) {
		w.traffic(20, 2000, 5*time.Minute)
		w.end()
		during := w.healthy(partialStart, partialStart+2*time.Minute)
		w.within("healthy p50", during.p50, 36*time.Second)
		w.within("healthy p99", during.p99, 75*time.Second)
	})
}

// A retry never comes back, of a route without a time-out that has learned a limit.
// The retries of other items go on.
func TestWildStuckRetryUnderALimit(t *testing.T) {
	const share = 20
	requests := 0
	s := scene{latency: 200 * time.Millisecond, affected: func(item int) bool { return item%share != 5 }} // only those of 5, 25, … are looked at
	s.wait = func(_ time.Duration, f *fate) time.Duration {
		if f.item == 0 && f.calls > 1 {
			return time.Hour
		}
		return 0
	}
	s.answer = func(at time.Duration, f *fate) error {
		switch requests++; {
		case f.calls == 1 && f.item%share == 5, f.calls == 1 && f.item == 0:
			return errPlain
		case requests%60 == 0 && at < 10*time.Minute:
			return errRefused
		}
		return nil
	}
	wild(t, "for an hour", s, func(w *world) {
		w.traffic(20, 2000, 5*time.Minute)
		w.end()
		w.within("p99 of items that fail once", w.healthy(10*time.Second, 5*time.Minute).p99, 2*time.Minute)
	})
}

// Calls that take long, so that many run at a time. Fewer at a time would not make
// fewer of them fail: only retries, which always fail, would become fewer.
func TestWildPartialOutageOfSlowCalls(t *testing.T) {
	for _, share := range []int{2, 5, 20} {
		partial(t, fmt.Sprintf("1 in %d", share), 20, share, 5*time.Minute, true, scene{latency: 300 * time.Millisecond})
	}
}

const partialStart = 3 * time.Second

// partial runs a partial outage. When it fits what the flow can hold, healthy
// items must not notice it.
func partial(t *testing.T, name string, rate, share int, d time.Duration, fits bool, s scene) {
	t.Helper()
	end := partialStart + d
	s.affected = func(item int) bool { return item%share == 0 }
	s.answer = func(at time.Duration, f *fate) error {
		if s.affected(f.item) && at > partialStart && at < end {
			if s.timeout > 0 {
				return context.DeadlineExceeded
			}
			return errPlain
		}
		return nil
	}
	items, after := map[int]int{20: 1000, 200: 2000, 2000: 10_000}[rate], 20*time.Second
	if rate == 2000 && !proof {
		after = 2 * time.Second
	}
	wild(t, name, s, func(w *world) {
		w.traffic(rate, items, end+after)
		w.end()
		p99, caughtUp := w.healthy(partialStart, w.at()).p99, w.caughtUp(end)-end
		if fits {
			w.within("healthy p99", p99, time.Second)
			w.within("time to catch up", caughtUp, time.Minute) // the longest backoff is 30 s
			return
		}
		w.say("more than fits: healthy p99 %v, time to catch up %v", short(p99), short(caughtUp))
	})
}

// Every request may fail, whatever its item: nothing is parked.
func TestWildFlakySink(t *testing.T) {
	for _, c := range []struct {
		share string
		fails func(n int) bool
	}{
		{"1 in 20", func(n int) bool { return n%20 == 0 }},
		{"1 in 2", func(n int) bool { return n%2 == 0 }},
		{"9 in 10", func(n int) bool { return n%10 != 0 }},
	} {
		for _, rate := range []int{20, 200} {
			n := 0
			s := scene{answer: func(at time.Duration, _ *fate) error {
				n = (n*1103515245 + 12345) & 0x7fffffff // a stable series without a pattern
				if at < 12*time.Minute && c.fails(n>>8) {
					return errPlain
				}
				return nil
			}}
			d := 14 * time.Minute
			if rate == 200 {
				if c.share != "1 in 20" && !proof {
					continue
				}
				d = 2 * time.Minute
			}
			wild(t, fmt.Sprintf("%s requests fails at %d a second", c.share, rate), s, func(w *world) {
				w.traffic(rate, 1000, d)
				fig := w.end()
				if c.share == "1 in 20" {
					w.within("p99", fig.healthy.p99, time.Second)
				}
			})
		}
	}
}
