// Package budget limits the units of a table's capacity that are taken per second.
//
// Only the response says how much a request has consumed. So a request takes an
// estimate, waits while others have taken more than the budget, and settles the
// difference afterwards. The next request waits for an underestimate.
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
	turn chan struct{} // held by the first caller of the queue
	back chan struct{} // wakes it: units came back, or the rate is another

	mu    sync.Mutex
	rate  float64 // units a second
	level float64
	at    time.Time // of level
}

// New returns a full bucket; rate is in units a second and more than 0.
func New(rate float64) *Bucket {
	return &Bucket{rate: rate, turn: make(chan struct{}, 1), back: make(chan struct{}, 1), level: max(rate, 1), at: time.Now()}
}

// Rate returns the units that flow in a second.
func (b *Bucket) Rate() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rate
}

// SetRate changes the rate from now on; it is more than 0.
func (b *Bucket) SetRate(rate float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	b.rate = rate
	b.wake()
}

// Take takes n units: at once if the bucket has any and nobody waits. On an error,
// which is ctx's, it takes nothing.
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
		select {
		case <-time.After(wait):
		case <-b.back:
		case <-ctx.Done():
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
	if n > 0 {
		b.wake()
	}
}

// wake lets the first caller look again, or the next one look twice.
func (b *Bucket) wake() {
	select {
	case b.back <- struct{}{}:
	default:
	}
}

// fill adds the units earned since the last fill. The bucket keeps at most a
// second's worth, and room for one unit, without which nothing could run.
func (b *Bucket) fill() {
	now := time.Now()
	b.level = min(b.level+b.rate*now.Sub(b.at).Seconds(), max(b.rate, 1))
	b.at = now
}
