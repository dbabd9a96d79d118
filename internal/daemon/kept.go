package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
)

// kept is a box of dead letters that knows whether it can store them: what
// cannot be stored is tried again, and nothing behind it gets on.
type kept struct {
	*deadletter.Box
	logger  *slog.Logger
	damaged func() error // why the store cannot be used; nil: it does not say

	mu          sync.Mutex
	err         error
	since, last time.Time // of the failures since one was stored
}

// forgetAfter is how long a failure counts that nothing follows: a message of a
// queue may be tried again elsewhere. Every other is tried again before.
const forgetAfter = 20 * time.Minute

func (k *kept) Park(ctx context.Context, rec *sluice.Record, f sluice.Failure) error {
	return k.noted(ctx, k.Box.Park(ctx, rec, f))
}

func (k *kept) ParkGap(ctx context.Context, g *sluice.Gap) error {
	return k.noted(ctx, k.Box.ParkGap(ctx, g))
}

// handled reports a handled record to the box: its letter from before a restart is
// obsolete. See flow.Hooks.
func (k *kept) handled(_ context.Context, rec *sluice.Record, route *sluice.Route, r flow.Result, _ time.Duration, _ error) {
	if route != nil && (r == flow.Done || r == flow.Skipped) {
		if err := k.Handled(context.Background(), rec, route.Name); err != nil {
			k.logger.Error("a record has succeeded that may have been parked before a restart, and its dead letter cannot be deleted: purge it before you redrive",
				"route", route.Name, "deadLetter", k.ID(rec, route.Name), "error", err)
		}
	}
}

// sharedStore is a store of several processes.
type sharedStore interface {
	FirstClaim(s state.Stream, shardID string) bool
}

// adopted makes h report to the box each shard that another worker may have had.
func (k *kept) adopted(h poller.Hooks, store sharedStore) poller.Hooks {
	next := h.ShardStarted
	h.ShardStarted = func(s poller.Shard, after sluice.Sequence) {
		if !store.FirstClaim(state.Stream{Application: k.Application(), ARN: s.StreamARN}, s.ID) {
			k.Adopt(s.ID)
		}
		next(s, after)
	}
	return h
}

// noted notes how a letter was stored, and returns err.
func (k *kept) noted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return err // cut off
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if k.err == nil || now.Sub(k.last) > forgetAfter {
		k.since = now
	}
	k.err, k.last = err, now
	return err
}

func (k *kept) unready() []string {
	if k.damaged != nil {
		if err := k.damaged(); err != nil {
			return []string{err.Error()}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil || time.Since(k.last) > forgetAfter {
		return nil
	}
	return []string{fmt.Sprintf("dead letters cannot be stored since %s, and what failed for good waits for that: %v", k.since.Format(time.RFC3339), k.err)}
}
