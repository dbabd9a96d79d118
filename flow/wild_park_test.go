package flow_test

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/flow"
)

// A person parks the records of a partial outage: these and no others, and the
// route works again.
func TestWildParkedByAPerson(t *testing.T) {
	const failing = 50
	s := scene{affected: func(item int) bool { return item < failing }}
	s.bad = func(f *fate) bool { return s.affected(f.item) }
	s.answer = func(_ time.Duration, f *fate) error {
		if s.affected(f.item) {
			return errPlain
		}
		return nil
	}
	healthy := func(first int) func(n int) int { // a record an item
		return func(n int) int { return first + n }
	}
	wild(t, "50 items", s, func(w *world) {
		w.trafficOf(100, 40*time.Second, func(n int) int { // each 20th fails, until 50 do
			if n%20 == 0 && n/20 < failing {
				return n / 20
			}
			return failing + n
		})
		w.trafficOf(20, 11*time.Minute, healthy(10_000)) // nothing is poison meanwhile
		if s := w.group.States()[0]; s.State != flow.Partial || s.Failing != failing {
			t.Errorf("before: %+v", s)
		}
		if n, more := w.flow.Park("another", false); n+more != 0 {
			t.Errorf("%d parked of a route that there is not", n)
		}
		if n, pending := w.flow.Park("wild", false); n+pending != failing {
			t.Errorf("%d parked, %d pending, want %d", n, pending, failing)
		}
		w.trafficOf(20, time.Minute, healthy(100_000))
		if s := w.group.States()[0]; s.State != flow.Works || s.Failing != 0 || s.Parked != 0 {
			t.Errorf("after: %+v", s)
		}
		if n, more := w.flow.Park("wild", false); n+more != 0 {
			t.Errorf("%d parked the second time", n)
		}
		if fig := w.end(); fig.parkedBad != failing {
			t.Errorf("%d parked, want %d", fig.parkedBad, failing)
		}
		w.within("healthy p99", w.healthy(0, w.at()).p99, time.Second)
	})
}
