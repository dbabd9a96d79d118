//go:build integration || long

package flow_test

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// An outage ends, and from then on the handler has nothing to write, or fails
// for good: neither says that the sink works. The flow goes on at full speed
// and the group tells of no outage.
func TestWildOutageEndsWithoutSuccess(t *testing.T) {
	const (
		down    = 100 // records that meet the outage
		records = 10_000
		outage  = time.Minute
		latency = 20 * time.Millisecond // 64 slots: 3,200 a second
	)
	ideal := records * latency / 64
	for name, c := range map[string]struct {
		outcome error
		bad     func(f *fate) bool
	}{
		"skips":              {sluice.Skip("nothing to write"), nil},
		"permanent failures": {sluice.Permanent(errBroken), func(*fate) bool { return true }},
	} {
		s := scene{latency: latency, bad: c.bad, answer: func(at time.Duration, _ *fate) error {
			if at < outage {
				return errPlain
			}
			return c.outcome
		}}
		wild(t, "ends with "+name, s, func(w *world) {
			w.burst(down, down)
			time.Sleep(outage)
			from := w.at()
			w.burst(records, records)
			// A probe comes every 30 s at least.
			w.within("time for 10,000", w.end().last-from, 2*ideal+30*time.Second)
		})
		wild(t, "ends with "+name+", later traffic", s, func(w *world) {
			w.burst(down, down)
			time.Sleep(2 * outage)
			from := w.at()
			w.burst(records, records)
			w.within("time for 10,000", w.end().last-from, 2*ideal+time.Second)
		})
	}
}

// While the sink is down, the handler has nothing to write for some records, and
// fails for good for others. What meets the outage is not parked.
func TestWildSkipsDuringAnOutage(t *testing.T) {
	const start, end = 10 * time.Second, 5*time.Minute + 10*time.Second
	neutral := func(item int) bool { return item%4 < 2 }
	for name, outcome := range map[string]error{
		"skips":              sluice.Skip("nothing to write"),
		"permanent failures": sluice.Permanent(errBroken),
	} {
		s := scene{
			latency:  50 * time.Millisecond,
			affected: neutral,
			bad:      func(f *fate) bool { return sluice.IsPermanent(outcome) && neutral(f.item) },
			answer: func(at time.Duration, f *fate) error {
				switch {
				case neutral(f.item):
					return outcome
				case at > start && at < end:
					return errPlain
				}
				return nil
			},
		}
		wild(t, name+" at 50 a second", s, func(w *world) {
			w.traffic(50, 1000, end+2*time.Minute)
			fig := w.end()
			if s.bad(w.fates[0]) && fig.parkedBad != fig.records/2 {
				w.t.Errorf("%d records parked, want the %d that failed for good", fig.parkedBad, fig.records/2)
			}
			w.within("p99 of the last minute", w.healthy(end+time.Minute, w.at()).p99, time.Second)
		})
		wild(t, name+", a backlog", s, func(w *world) {
			w.burst(20_000, 20_000) // of which 10 s are 12,800
			w.within("time to catch up", w.end().last-end, time.Minute)
		})
	}
}
