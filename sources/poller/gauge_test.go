package poller

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A reader waits for memory, gets it, and its poll fails, again and again: no
// single wait is long, and the shard is not ready all the same.
func TestNoRoomBetweenFailingPollsIsNotReady(t *testing.T) {
	for name, poll := range map[string]error{"good polls": nil, "failing polls": errors.New("reset")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGauge(Shard{Table: "t", ID: "s"}, &clock{})
				for range 10 {
					g.noRoom(true)
					time.Sleep(time.Minute)
					g.noRoom(false)
					g.polled(poll, transient)
				}
				reasons := strings.Join(g.trouble(5*time.Minute, 5*time.Minute), "\n")
				if ready := reasons == ""; ready != (poll == nil) {
					t.Fatalf("reasons: %q", reasons)
				}
				if poll == nil {
					return
				}
				if !strings.Contains(reasons, "memory") || !strings.Contains(reasons, "reset") {
					t.Errorf("reasons: %q", reasons)
				}
				if g.polled(nil, 0); len(g.trouble(5*time.Minute, 5*time.Minute)) > 0 {
					t.Error("not ready after a good poll")
				}
			})
		})
	}
}
