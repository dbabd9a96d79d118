// Package backoff waits before something is tried again.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Full is the delay before try n+1, with full jitter: a random part of base
// doubled n-1 times, at most limit
// (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
func Full(base, limit time.Duration, n int) time.Duration {
	return rand.N(Doubled(base, limit, n-1)) + 1
}

// Half is Full for a wait that must not be short: at least half of what Full may
// be.
func Half(base, limit time.Duration, n int) time.Duration {
	d := Doubled(base, limit, n-1)
	return d/2 + rand.N(d/2+1)
}

// Doubled is base doubled n times, at most limit.
func Doubled(base, limit time.Duration, n int) time.Duration {
	n = max(n, 0)
	if n > 62 || base > limit>>n {
		return limit
	}
	return base << n
}

// Sleep waits for d, and returns the cause of the end of ctx if that comes first.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Within is Sleep for a try that ctx must leave time for: it returns false, at
// once, when the deadline of ctx comes before.
func Within(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	return Sleep(ctx, d) == nil
}
