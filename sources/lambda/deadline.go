package lambda

import (
	"context"
	"time"
)

// times are the points before an invocation's deadline; all zero when it has
// none.
type times struct {
	margin time.Duration
	start  time.Time // nothing is started later
	cancel time.Time // running handlers are cancelled
	answer time.Time // the answer goes out whatever still runs
}

func timesOf(ctx context.Context, margin time.Duration) times {
	deadline, ok := ctx.Deadline()
	if !ok {
		return times{}
	}
	given := time.Until(deadline)
	if margin == 0 {
		margin = max(time.Second, given/10)
	}
	// A margin that eats all the time would start nothing, for ever.
	margin = max(min(margin, given/2), 0)
	return times{
		margin: margin,
		start:  deadline.Add(-margin),
		cancel: deadline.Add(-margin / 2),
		answer: deadline.Add(-margin / 4),
	}
}

// until returns ctx ended at t as well.
func (times) until(ctx context.Context, t time.Time) (context.Context, context.CancelFunc) {
	if t.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, t)
}

// limit cuts d so that it ends before the last start.
func (t times) limit(d time.Duration) time.Duration {
	if t.start.IsZero() {
		return d
	}
	return max(min(d, time.Until(t.start)), 0)
}
