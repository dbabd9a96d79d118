//go:build integration || long

package flow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// A handler asks to be called later, as one does that waits for a lease. That is
// a wish and no failure: it ends in the dead letters by age alone.
func TestWildRetryAfter(t *testing.T) {
	for _, asks := range []int{9, 100} {
		for _, items := range []int{1, 50} {
			s := scene{
				affected: func(item int) bool { return item < items },
				answer: func(_ time.Duration, f *fate) error {
					if f.item < items && f.nth == 0 && f.calls <= asks {
						return sluice.RetryAfter(time.Minute, errPlain)
					}
					return nil
				},
			}
			wild(t, fmt.Sprintf("%d items ask %d times for a minute", items, asks), s, func(w *world) {
				w.traffic(200/asks, 200, time.Duration(asks+1)*time.Minute)
				fig := w.end()
				w.within("last record settled", fig.settled, time.Duration(asks+2)*time.Minute)
				w.within("healthy p99", fig.healthy.p99, 100*time.Millisecond)
			})
			wild(t, fmt.Sprintf("%d items ask %d times for a minute, no other traffic", items, asks), s, func(w *world) {
				w.burst(items, items)
				w.within("last record settled", w.end().settled, time.Duration(asks+1)*time.Minute)
			})
		}
	}
	for _, wish := range []time.Duration{time.Minute, 30 * time.Hour} {
		s := scene{
			bad: func(f *fate) bool { return f.item == 0 },
			answer: func(_ time.Duration, f *fate) error {
				if f.item == 0 {
					return sluice.RetryAfter(wish, errPlain)
				}
				return nil
			},
		}
		wild(t, fmt.Sprintf("asks for ever for %v", wish), s, func(w *world) {
			w.burst(1, 1)
			for i := range 1000 { // others succeed all the time
				w.submitOne(1 + i)
				time.Sleep(time.Minute)
			}
			fig := w.end()
			if fig.parkedBad != 1 || fig.wait < 19*time.Hour {
				w.t.Errorf("%d parked after %v, want 1 after 20 h", fig.parkedBad, short(fig.wait))
			}
			w.within("parked after", fig.wait, trim-time.Minute)
		})
	}
}
