// Package budget bounds how many units of a table's capacity are taken in a
// second.
//
// Only the answer says what a request has consumed. A request therefore takes
// an estimate, waits while what others took is more than there is, and settles
// the difference afterwards. What was underestimated is waited for by the next.
package budget

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Bucket fills with its rate, up to a second's worth. A caller that finds it
// empty waits until earlier ones have been paid for: first come, first served.
// Units that a caller gives back go to the next one in the queue. Its methods are
// safe for concurrent use.
type Bucket struct {
	rate float64       // units a second
	turn chan struct{} // held by the first caller of the queue

	mu    sync.Mutex
	level float64
	at    time.Time // of level
}

// New returns a full bucket; rate is in units a second and more than 0.
func New(rate float64) *Bucket {
	return &Bucket{rate: rate, turn: make(chan struct{}, 1), level: max(rate, 1), at: time.Now()}
}

// Rate returns the units that flow in a second.
func (b *Bucket) Rate() float64 { return b.rate }

// Take takes n units: at once when the bucket has anything and nobody waits. On an
// error, which is that of ctx, nothing is taken.
func (b *Bucket) Take(ctx context.Context, n float64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		wait := b.take(n)
		if wait <= 0 {
			return nil
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
			return fmt.Errorf("the next %v are taken, and the deadline is before: %w", wait.Round(time.Millisecond), context.DeadlineExceeded)
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
}

// take takes n units, or returns how long to wait before the next try.
func (b *Bucket) take(n float64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	if b.level <= 0 {
		return time.Duration(-b.level/b.rate*float64(time.Second)) + 1
	}
	b.level -= n
	return 0
}

// Add gives n units, or takes them without waiting when n is negative.
func (b *Bucket) Add(n float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	b.level += n
}

// fill adds what has flown in; a second's worth at most stays, and room for
// one unit, without which nothing could be done at all.
func (b *Bucket) fill() {
	now := time.Now()
	b.level = min(b.level+b.rate*now.Sub(b.at).Seconds(), max(b.rate, 1))
	b.at = now
}
