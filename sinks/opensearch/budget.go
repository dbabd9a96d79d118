package opensearch

import (
	"context"
	"slices"
	"sync"

	"github.com/sluicehq/sluice/internal/quorum"
)

// budget limits the bytes of all calls together, first come, first served.
type budget struct {
	max int

	mu    sync.Mutex
	taken int
	queue []*claim
}

type claim struct {
	bytes   int
	granted chan struct{}
}

// take waits until n bytes are free, and returns the number to give back. A
// request above the budget takes all of it. On an error it takes nothing.
//
// A waiting caller is in no lane and no batch, and counts as waiting. So callers
// that hold bytes never wait for one that does not.
func (b *budget) take(ctx context.Context, n int) (int, error) {
	n = min(n, b.max)
	b.mu.Lock()
	if len(b.queue) == 0 && b.taken+n <= b.max {
		b.taken += n
		b.mu.Unlock()
		return n, nil
	}
	c := &claim{n, make(chan struct{})}
	b.queue = append(b.queue, c)
	b.mu.Unlock()
	m := quorum.From(ctx)
	m.Park()
	defer quorum.Unpark([]*quorum.Member{m})
	select {
	case <-c.granted:
		return n, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.queue, c); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
	} else {
		b.taken -= n // granted meanwhile
	}
	b.grant()
	return 0, context.Cause(ctx)
}

// give returns bytes from take.
func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken -= n
	b.grant()
}

func (b *budget) grant() {
	for len(b.queue) > 0 && b.taken+b.queue[0].bytes <= b.max {
		b.taken += b.queue[0].bytes
		close(b.queue[0].granted)
		b.queue = slices.Delete(b.queue, 0, 1)
	}
}
