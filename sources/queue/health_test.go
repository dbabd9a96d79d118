package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// Whether messages come to an end is asked of those in hand, not of the time in
// which there were none, and of few as of many.
func TestHealthOfWhatIsInHand(t *testing.T) {
	for _, n := range []int{1, 10} { // of 10 places
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				release := make(chan struct{})
				w.start(Options{Concurrency: 10}, func(context.Context, *sluice.Record) error {
					<-release
					return nil
				})
				pass(time.Hour)
				if h := w.c.NotReady(); len(h) > 0 {
					t.Errorf("unready because nobody sent a message: %q", h)
				}
				for i := range n {
					w.stub.send("jobs", body(i))
				}
				pass(stallAfter - time.Minute)
				if got := w.c.Hands()["jobs"].Messages; got != n {
					t.Fatalf("%d messages in hand, want %d", got, n)
				}
				if h := w.c.NotReady(); len(h) > 0 {
					t.Errorf("unready for messages that came a moment ago: %q", h)
				}
				pass(2 * time.Minute)
				if h := w.c.NotReady(); len(h) != 1 || !strings.Contains(h[0], fmt.Sprintf("queue jobs: %d of at most 10 messages are in hand, and none has come to its end since ", n)) {
					t.Errorf("nothing moves: %q", h)
				}
				close(release)
				pass(time.Minute)
				if h := w.c.NotReady(); len(h) > 0 {
					t.Errorf("unready after the end of all: %q", h)
				}
				w.end()
				w.expectLeft("jobs")
			})
		})
	}
}

// Status also reports a route that fails for every message.
func TestOutagesOfQueues(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range 10 {
			w.stub.send("jobs", body(i))
		}
		var down atomic.Bool
		down.Store(true)
		w.start(Options{}, func(context.Context, *sluice.Record) error {
			if down.Load() {
				return errDown
			}
			return nil
		})
		pass(10 * time.Minute)
		if got := w.c.Outages(); len(got) != 1 || got[0].Route != "job" || got[0].Since.IsZero() || got[0].Err == nil || !strings.Contains(got[0].Err.Error(), errDown.Error()) {
			t.Errorf("outages while it is down: %v", got)
		}
		down.Store(false)
		pass(time.Hour)
		if got := w.c.Outages(); len(got) != 0 {
			t.Errorf("outages after its end: %v", got)
		}
		w.end()
		if n := len(slices.Compact(w.calls())); n < 10 {
			t.Errorf("%d calls", n)
		}
	})
}
