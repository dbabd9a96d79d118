// Package batch is group commit behind a plain call.
package batch

import (
	"context"
	"time"
)

// Options are the limits of a Batcher.
type Options struct {
	MaxItems int           // items in one commit (default 100)
	MaxBytes int           // bytes in one commit, by the size func (default: no limit)
	InFlight int           // commits at a time (default 4)
	Linger   time.Duration // how long a batch waits for more when it is not told that nobody is left (default 2 ms; negative: for ever)
	Timeout  time.Duration // of one commit (default 30 s)
}

// Batcher groups concurrent calls into commits.
type Batcher[T any] struct{}

// New returns a Batcher. commit makes items durable and returns one error per
// item, or nil when all succeeded. size returns an item's bytes; nil counts
// no bytes.
func New[T any](commit func(context.Context, []T) []error, size func(T) int, o Options) *Batcher[T] {
	return &Batcher[T]{}
}

// Do returns once item is durable (nil) or has failed.
func (b *Batcher[T]) Do(ctx context.Context, item T) error { return nil }

// DoAll is Do for several items of one caller, in order; one error per item,
// or nil when all are durable.
func (b *Batcher[T]) DoAll(ctx context.Context, items []T) []error { return nil }
