package run

import (
	"context"
	"time"
)

// A flow waits for its records as long as the grace allows, also for those that a sink
// holds, which cannot succeed any more: no check is made after the stop. So the daemon
// leaves its readers behind when nothing else was in progress for leaveAfter. By then
// what was settled is stored, which is done once a second; the rest comes again.
const (
	leaveAfter = 2 * time.Second
	leaveLook  = 250 * time.Millisecond
)

// awaitEnd returns true when over is closed, and false when ctx has ended and only held
// records are left. From then on no handler is called.
func (s *sources) awaitEnd(ctx context.Context, over <-chan struct{}) bool {
	select {
	case <-over:
		return true
	case <-ctx.Done():
	}
	for quiet := time.Duration(0); quiet < leaveAfter; quiet += leaveLook {
		select {
		case <-over:
			return true
		case <-time.After(leaveLook):
		}
		if !s.onlyHeld() {
			quiet = 0
		}
	}
	s.checks.left.Store(true)
	s.logger.Info("not waiting for the records that a sink holds: they come again at the next start", "items", len(s.held()))
	return false
}

// onlyHeld reports whether all that is in progress are records that a sink holds.
func (s *sources) onlyHeld() bool {
	if s.calls.running() {
		return false
	}
	if s.consumer != nil {
		for _, hand := range s.consumer.Hands() {
			if hand.Messages > 0 {
				return false
			}
		}
	}
	held := s.held()
	for _, l := range held {
		if !s.checks.holdRoute(l.Route) {
			return false
		}
	}
	return len(held) > 0
}
