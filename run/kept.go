package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
)

// kept is a box of dead letters that knows whether it can store them: what
// cannot be stored is tried again, and nothing behind it gets on.
type kept struct {
	*deadletter.Box

	mu          sync.Mutex
	err         error
	since, last time.Time // of the failures since one was stored
}

// forgetAfter is how long a failure counts that nothing follows: a message of a
// queue may be tried again elsewhere. Every other is tried again before.
const forgetAfter = 20 * time.Minute

func (k *kept) Park(ctx context.Context, rec *sluice.Record, f sluice.Failure) error {
	err := k.Box.Park(ctx, rec, f)
	k.note(ctx, err)
	return err
}

func (k *kept) ParkGap(ctx context.Context, g *sluice.Gap) error {
	err := k.Box.ParkGap(ctx, g)
	k.note(ctx, err)
	return err
}

func (k *kept) note(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil {
		return // cut off
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if k.err == nil || now.Sub(k.last) > forgetAfter {
		k.since = now
	}
	k.err, k.last = err, now
}

func (k *kept) unready() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil || time.Since(k.last) > forgetAfter {
		return nil
	}
	return []string{fmt.Sprintf("dead letters cannot be stored since %s, and what failed for good waits for that: %v", k.since.Format(time.RFC3339), k.err)}
}
