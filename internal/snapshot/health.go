package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/sluicehq/sluice/flow"
)

// Troubles returns what keeps the backfill from getting on: calls of the service
// or of the store that fail. One that has not begun, or has ended, has none:
// live reading does not depend on it.
func (s *Source) Troubles() []string { return s.health.reasons(s.o.Table) }

// Held lists the items that wait for a retry or a stuck handler, the oldest
// first.
func (s *Source) Held() []flow.Held {
	var all []flow.Held
	for _, f := range s.flows() {
		all = append(all, f.Held()...)
	}
	slices.SortStableFunc(all, func(a, b flow.Held) int { return cmp.Compare(b.Age, a.Age) })
	return all
}

// Park has the records parked whose last call of a route failed, and counts them:
// see [flow.Flow.Park]. It is safe for concurrent use.
func (s *Source) Park(route string, dryRun bool) (parked, pending int) {
	for _, f := range s.flows() {
		n, more := f.Park(route, dryRun)
		parked, pending = parked+n, pending+more
	}
	return parked, pending
}

// flows are those of the segments being read.
func (s *Source) flows() (all []*flow.Flow) {
	for _, g := range s.all() {
		g.mu.Lock()
		if g.flow != nil {
			all = append(all, g.flow)
		}
		g.mu.Unlock()
	}
	return all
}

// tellEvery is the time between two lines of the log about the same trouble.
const tellEvery = 10 * time.Second

// patient is how long a segment may be in trouble before that is a matter of
// readiness: throttles come and go.
const patient = 30 * time.Second

type trouble struct {
	err   error
	since time.Time
}

type health struct {
	mu       sync.Mutex
	running  bool
	segments map[int]trouble
	saving   trouble
	tellScan rate.Sometimes
	tellSave rate.Sometimes
}

func (h *health) set(running bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = running
}

func (h *health) store(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.saving = trouble{}
	} else if h.saving.err == nil {
		h.saving = trouble{err, time.Now()}
	}
}

// troubled notes that a segment's page could not be read.
func (s *Source) troubled(segment int, err error, retryIn time.Duration) {
	h := &s.health
	h.mu.Lock()
	t := h.segments[segment]
	if t.err == nil {
		t.since = time.Now()
	}
	t.err = err
	h.segments[segment] = t
	h.mu.Unlock()
	if classify(err) != throttled {
		h.tellScan.Do(func() {
			s.log.Warn("a page could not be read and is tried again", "segment", segment, "retryIn", retryIn, "error", err)
		})
	}
}

func (s *Source) untroubled(segment int) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	delete(s.health.segments, segment)
}

func (h *health) reasons(table string) (reasons []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.running {
		return nil
	}
	for _, i := range slices.Sorted(maps.Keys(h.segments)) {
		if t := h.segments[i]; time.Since(t.since) > patient {
			reasons = append(reasons, fmt.Sprintf("backfill of table %q: segment %d cannot be read since %s: %v", table, i, t.since.Format(time.RFC3339), t.err))
			break // the others mostly say the same
		}
	}
	if h.saving.err != nil {
		reasons = append(reasons, fmt.Sprintf("backfill of table %q: its progress cannot be stored since %s: %v", table, h.saving.since.Format(time.RFC3339), h.saving.err))
	}
	return reasons
}
