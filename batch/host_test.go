package batch

import (
	"context"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice/internal/quorum"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host runs jobs as a flow runs handlers: so many at once, a job that waits in
// a sink gives its slot back, and members are used again.
type host struct {
	scope quorum.Scope
	limit int

	mu      sync.Mutex
	running int
	ready   []func(context.Context)
	free    []*quorum.Member
	wg      sync.WaitGroup
}

func (h *host) submit(jobs ...func(context.Context)) {
	h.scope.Enter(1)
	defer h.scope.Leave(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wg.Add(len(jobs))
	h.ready = append(h.ready, jobs...)
	h.start()
}

func (h *host) start() {
	for h.running < h.limit && len(h.ready) > 0 {
		job := h.ready[0]
		h.ready = h.ready[1:]
		h.running++
		h.scope.Enter(1)
		m := &quorum.Member{Scope: &h.scope, Host: h}
		if k := len(h.free); k > 0 {
			m, h.free = h.free[k-1], h.free[:k-1]
		}
		go h.run(job, m)
	}
}

func (h *host) run(job func(context.Context), m *quorum.Member) {
	defer h.wg.Done()
	defer func() {
		h.mu.Lock()
		h.running--
		h.free = append(h.free, m)
		h.start()
		h.mu.Unlock()
		h.scope.Leave(1)
	}()
	job(quorum.With(context.Background(), m))
}

func (h *host) Parked(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running -= n
	h.start()
}

func (h *host) Unparked(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running += n
}

func (h *host) wait() { h.wg.Wait() }
