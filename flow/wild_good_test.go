package flow_test

import (
	"fmt"
	"testing"
	"time"
)

// Only bad records wait, then a good one comes: it is called before it could
// notice how many they are.
func TestWildGoodBehindBad(t *testing.T) {
	const healed = time.Hour
	for _, bad := range []int{10, 100, 1000} {
		for _, after := range []time.Duration{0, time.Minute, 20 * time.Minute} {
			s := scene{
				affected: func(item int) bool { return item < bad },
				answer: func(at time.Duration, f *fate) error {
					if f.item < bad && at < healed {
						return errPlain
					}
					return nil
				},
			}
			wild(t, fmt.Sprintf("%d bad, %v later a good one", bad, after), s, func(w *world) {
				w.burst(bad, bad)
				var good []*fate
				for range 2 { // the second comes when the first has shown that the route works
					time.Sleep(after)
					w.submitOne(bad + len(good))
					good = append(good, w.fates[len(w.fates)-1])
				}
				w.end()
				for i, f := range good {
					w.within(fmt.Sprintf("good record %d waits", i+1), f.called-f.due, 10*time.Second)
				}
				// The longest backoff is 30 s.
				w.within("bad ones settled", w.figures().settled-healed, 2*time.Minute)
			})
		}
	}
}
