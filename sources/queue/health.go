package queue

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/flow"
)

// NotReady returns why the consumer is not ready; nothing when it is. The consumer is
// ready when every queue is open, SQS responds, messages in hand come to an end, and
// no route fails for all.
func (c *Consumer) NotReady() (reasons []string) {
	for _, s := range c.sources {
		reasons = append(reasons, s.trouble()...)
	}
	return reasons
}

// Outages lists the routes that fail for every message of a queue, ordered by
// queue.
func (c *Consumer) Outages() (all []flow.RouteState) {
	for _, s := range c.sources {
		all = append(all, s.judge.outages()...)
	}
	return all
}

// Hands returns the counts of messages in hand, by queue name.
func (c *Consumer) Hands() map[string]Hand {
	hands := make(map[string]Hand, len(c.sources))
	for _, s := range c.sources {
		hands[s.name], _ = s.hand.look()
	}
	return hands
}

func (s *source) trouble() (reasons []string) {
	for _, r := range s.health.reasons() {
		reasons = append(reasons, fmt.Sprintf("queue %s: %s", s.name, r))
	}
	if now, since := s.hand.look(); now.Messages > 0 && time.Since(since) > stallAfter && !s.c.paused() {
		reasons = append(reasons, fmt.Sprintf("queue %s: %d of at most %d messages are in hand, and none has come to its end since %s: see whether handlers return", s.name, now.Messages, s.hand.size, since.Format(time.RFC3339)))
	}
	for _, o := range s.judge.outages() {
		reasons = append(reasons, fmt.Sprintf("queue %s: route %q fails for every message since %s: %v", s.name, o.Route, o.Since.Format(time.RFC3339), o.Err))
	}
	return reasons
}

// paused reports whether messages may wait for a paused route.
func (c *Consumer) paused() bool {
	return slices.ContainsFunc(c.group.States(), func(s flow.RouteState) bool { return s.Throttle.Paused && s.Waiting > 0 })
}

func (s *source) log() *slog.Logger { return s.c.o.Logger.With("queue", s.name) }

// health is the state of one queue's calls.
type health struct {
	mu    sync.Mutex
	open  bool
	calls map[string]trouble // failing calls
}

type trouble struct {
	err         error
	since, last time.Time
}

// current is how long a failure counts without a later call: every needed call
// repeats sooner.
const current = 2 * time.Minute

func (h *health) begin(open bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = open
}

// call notes the result of a call.
func (h *health) call(name string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.calls, name)
		return
	}
	t, now := h.calls[name], time.Now()
	if t.err == nil || now.Sub(t.last) > current {
		t.since = now
	}
	t.err, t.last = err, now
	h.calls[name] = t
}

func (h *health) reasons() (reasons []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.open && len(h.calls) == 0 {
		return []string{"not open"}
	}
	for _, name := range slices.Sorted(maps.Keys(h.calls)) {
		t := h.calls[name]
		if time.Since(t.last) > current {
			continue
		}
		reasons = append(reasons, fmt.Sprintf("%s fails since %s: %v", name, t.since.Format(time.RFC3339), t.err))
	}
	return reasons
}

// warnings are logged once a second.
type warnings struct {
	mu       sync.Mutex
	last     time.Time
	unlogged int
}

// due reports whether to log a warning now, and the number of unlogged ones before
// it.
func (w *warnings) due(now time.Time) (unlogged int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.last) < time.Second {
		w.unlogged++
		return 0, false
	}
	unlogged, w.last, w.unlogged = w.unlogged, now, 0
	return unlogged, true
}
