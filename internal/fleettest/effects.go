//go:build unix

package fleettest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/backoff"
)

// Effect is one message that came to the queue.
type Effect struct {
	Worker   string // who sent it
	Item     string
	Version  int
	At       time.Time
	Repeated bool // the queue had it already, and dropped it
}

// Effects is a FIFO queue, and keeps what came to it. It drops a message whose
// deduplication id came before, like SQS, but for all time. It outlives the workers.
// The zero value is empty. Its methods are safe for concurrent use.
type Effects struct {
	// Latency, if set, returns how long a request takes before its messages are taken,
	// and after it. A worker that dies before it has sent nothing. It must be safe for
	// concurrent use; set it before a worker starts.
	Latency func() (before, after time.Duration)

	mu      sync.Mutex
	all     []Effect
	ids     map[string]bool
	counted map[string][]int // versions of each item that were not dropped, in order
	unknown []string         // bodies that are no effect
}

// All returns the effects from number n on, in the order in which they came.
func (e *Effects) All(n int) []Effect {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all[n:])
}

// Len returns how many effects came.
func (e *Effects) Len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.all)
}

// Missing returns how many of the written versions have no effect yet. written has the
// newest version of each item, from 1.
func (e *Effects) Missing(written map[string]int) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, versions := range written {
		n += max(0, versions-len(e.counted[name]))
	}
	return n
}

// Wrong compares the effects with everything that was written. Each item needs the
// effects of its versions from 1 on, in this order and without the dropped ones.
func (e *Effects) Wrong(written map[string]int) (wrong []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, body := range e.unknown {
		wrong = append(wrong, fmt.Sprintf("message %q is no effect", body))
	}
	for name, versions := range e.counted {
		if written[name] == 0 {
			wrong = append(wrong, fmt.Sprintf("item %s was never written, and has effects of versions %v", name, versions))
		}
	}
	for name, versions := range written {
		have := e.counted[name]
		for i := range max(versions, len(have)) {
			if i >= len(have) || i >= versions || have[i] != i+1 {
				wrong = append(wrong, fmt.Sprintf("item %s was written to version %d: from effect %d on come versions %v", name, versions, i+1, have[min(i, len(have)):min(i+10, len(have))]))
				break
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

// take takes the messages of a worker.
func (e *Effects) receive(worker string, messages []local.Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ids == nil {
		e.ids, e.counted = make(map[string]bool), make(map[string][]int)
	}
	for _, m := range messages {
		f := Effect{Worker: worker, At: time.Now(), Repeated: e.ids[m.MessageDeduplicationID]}
		if err := json.Unmarshal([]byte(m.MessageBody), &f); err != nil || f.Item == "" || m.MessageDeduplicationID == "" {
			e.unknown = append(e.unknown, m.MessageBody)
			continue
		}
		e.all = append(e.all, f)
		if !f.Repeated {
			e.ids[m.MessageDeduplicationID] = true
			e.counted[f.Item] = append(e.counted[f.Item], f.Version)
		}
	}
}

// serve answers a worker's request in SQS's protocol.
func (e *Effects) serve(worker string, w http.ResponseWriter, r *http.Request) {
	local.ServeQueue(w, r, func(_ string, messages []local.Message) bool {
		var before, after time.Duration
		if e.Latency != nil {
			before, after = e.Latency()
		}
		if backoff.Sleep(r.Context(), before) != nil {
			return false
		}
		e.receive(worker, messages)
		return backoff.Sleep(r.Context(), after) == nil
	})
}
