package opensearch

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/sluicehq/sluice/internal/quorum"
)

// budget limits the bytes of all calls together, first come, first served.
type budget struct {
	max  int
	free *semaphore.Weighted
}

func newBudget(bytes int) *budget { return &budget{bytes, semaphore.NewWeighted(int64(bytes))} }

// take waits until n bytes are free, and returns the number to give back. A
// request above the budget takes all of it. On an error it takes nothing.
//
// A waiting caller is in no lane and no batch, and counts as waiting. So callers
// that hold bytes never wait for one that does not.
func (b *budget) take(ctx context.Context, n int) (int, error) {
	n = min(n, b.max)
	if b.free.TryAcquire(int64(n)) {
		return n, nil
	}
	m := quorum.From(ctx)
	m.Park()
	defer quorum.Unpark([]*quorum.Member{m})
	if b.free.Acquire(ctx, int64(n)) != nil {
		return 0, context.Cause(ctx)
	}
	return n, nil
}

func (b *budget) give(n int) { b.free.Release(int64(n)) }
