package flow

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/routed"
)

// Held is an item that waits for a retry or for a stuck handler.
type Held struct {
	KeyHash  uint64
	Sequence sluice.Sequence // of the waiting record
	Route    string
	Attempts int
	Age      time.Duration // since the record was submitted
	Bytes    int64         // of the record and those behind it
	Stuck    bool
	Err      error
}

// Held lists the waiting items, oldest first. It omits records that were never
// called and wait only for a limit, and records that wait for a paused route.
func (f *Flow) Held() []Held {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	var out []Held
	stuck := map[*entry]bool{}
	for _, w := range f.all {
		if w.e == nil || w.current.Load()&1 == 0 {
			continue
		}
		stuck[w.e] = true
		h := f.heldEntry(w.e, now)
		h.Stuck = true
		h.Route = routed.Name(w.route.Load())
		if t := w.e.task; t != nil {
			h.Attempts, h.Err = t.failure.Attempts, t.failure.Last
		}
		out = append(out, h)
	}
	for e := range f.held {
		if stuck[e] {
			continue
		}
		for _, t := range e.tasks {
			err := t.failure.Last
			if err == nil && t.gate != nil {
				err = t.gate.trouble()
			}
			if t.state != done && err != nil && !t.paused() {
				h := f.heldEntry(e, now)
				h.Route, h.Attempts, h.Err = t.failure.Route, t.failure.Attempts, err
				out = append(out, h)
				break
			}
		}
	}
	slices.SortFunc(out, func(a, b Held) int { return cmp.Compare(b.Age, a.Age) })
	return out
}

func (f *Flow) heldEntry(e *entry, now time.Time) Held {
	h := Held{KeyHash: e.hash, Sequence: e.rec.Sequence, Age: now.Sub(e.at)}
	for ; e != nil; e = e.next {
		h.Bytes += e.bytes
	}
	return h
}
