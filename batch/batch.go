package batch

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluicehq/sluice/internal/commits"
	"github.com/sluicehq/sluice/internal/quorum"
)

// Batcher groups concurrent calls into commits. Its methods are safe for
// concurrent use. It has no goroutine and needs no Close.
type Batcher[T any] struct {
	commit  func(context.Context, []T) []error
	size    func(T) int
	opt     Options
	commits *commits.Commits

	// Lock order: mu, then a quorum.Scope's own. Parking and waking members,
	// and commits, run without mu.
	mu       sync.Mutex
	open     *group[T]   // takes more items; nil when the next caller begins one
	ready    []*group[T] // due or full groups that wait for a slot, oldest first
	inFlight int
	most     int // of inFlight, set by SetInFlight
	load     load
}

// New returns a Batcher. commit makes items durable and returns one error per
// item, or nil when all succeeded. size returns an item's bytes; a nil size counts
// none.
//
// commit runs on a caller's goroutine, up to InFlight times at once. Its context
// is the Batcher's own, without the callers' values. It ends after Timeout, or at
// the latest deadline of the callers if that is earlier. No caller cancels it.
// commit may keep the slice. If it panics, ends its goroutine, or returns a wrong
// number of errors, every item fails. If an item's error is sluice.Overloaded,
// fewer commits run at a time: down to one, and then with pauses of up to 4 s.
//
// New panics when commit is nil or a limit is negative.
func New[T any](commit func(context.Context, []T) []error, size func(T) int, o Options) *Batcher[T] {
	if commit == nil {
		panic("batch: New needs a commit function")
	}
	if err := o.validate(size != nil); err != nil {
		panic(err.Error())
	}
	o = o.withDefaults()
	b := &Batcher[T]{commit: commit, size: size, opt: o, commits: commits.Of(o.Metrics, o.Sink)}
	b.most, b.load.allowed = b.opt.InFlight, float64(b.opt.InFlight)
	return b
}

// SetInFlight limits concurrent commits to n, from 1 to Options.InFlight. Running
// commits finish first. Use it for a commit function that learns the load that its
// service can take. If the function waited itself instead, its items would miss
// later callers, and commits would shrink.
func (b *Batcher[T]) SetInFlight(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.most = min(max(n, 1), b.opt.InFlight)
	b.dispatch()
}

// Do returns nil once item is durable, or its error.
//
// If ctx ends before the item is sent, Do withdraws the item and returns an error
// that wraps ctx's cause. Once the item is sent, Do waits for the result even if
// ctx ends. Otherwise the caller's next change of the same item could overtake
// this one.
func (b *Batcher[T]) Do(ctx context.Context, item T) error {
	if ctx.Err() != nil {
		return notSent(ctx)
	}
	m := quorum.From(ctx)
	size := b.sizeOf(item)
	b.mu.Lock()
	g := b.groupFor(size)
	n := g.join(ctx, m)
	g.add(n, item, size)
	g.joined()
	b.mu.Unlock()
	if !g.wait(ctx, m, n) {
		return notSent(ctx)
	}
	return g.err(n, 0)
}

// DoAll is Do for several items of one caller, in order. It returns one error per
// item, or nil when all are durable. Items that do not fit in one commit go in
// several, one after another, even after a failure. If order does not matter, Do
// from several goroutines is faster. Without items it returns nil at once.
func (b *Batcher[T]) DoAll(ctx context.Context, items []T) []error { return b.doAll(ctx, items, false) }

// DoAllNow is DoAll without waiting for other callers: its groups are due at once.
// Use it for items already cut to the size of commits.
func (b *Batcher[T]) DoAllNow(ctx context.Context, items []T) []error {
	return b.doAll(ctx, items, true)
}

func (b *Batcher[T]) doAll(ctx context.Context, items []T, now bool) []error {
	m := quorum.From(ctx)
	sizes := b.sizesOf(items)
	var errs []error
	for from := 0; from < len(items); {
		to := len(items)
		var g *group[T]
		var n int
		sent := false
		if ctx.Err() == nil {
			g, n, to = b.joinSome(ctx, m, items, sizes, from, now)
			sent = g.wait(ctx, m, n)
		}
		for i := from; i < to; i++ {
			var err error
			if sent {
				err = g.err(n, i-from)
			} else {
				err = notSent(ctx)
			}
			if err != nil {
				if errs == nil {
					errs = make([]error, len(items))
				}
				errs[i] = err
			}
		}
		from = to
	}
	return errs
}

// joinSome puts as many of items[from:] as fit into one group, at least one. The
// group is full if more remain. now makes it due.
func (b *Batcher[T]) joinSome(ctx context.Context, m *quorum.Member, items []T, sizes []int, from int, now bool) (g *group[T], n, to int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g = b.groupFor(sizes[from])
	n = g.join(ctx, m)
	for to = from; to < len(items) && (to == from || g.fits(sizes[to])); to++ {
		g.add(n, items[to], sizes[to])
	}
	switch { // the reason to send comes last, because the group may be sent at once
	case to < len(items):
		g.close()
	case now:
		g.due()
	default:
		g.joined()
	}
	return g, n, to
}

// sizesOf calls the user's size func without the lock, because it may panic.
func (b *Batcher[T]) sizesOf(items []T) []int {
	sizes := make([]int, len(items))
	for i := range items {
		sizes[i] = b.sizeOf(items[i])
	}
	return sizes
}

func (b *Batcher[T]) sizeOf(item T) int {
	if b.size == nil {
		return 0
	}
	return b.size(item)
}

func notSent(ctx context.Context) error {
	return fmt.Errorf("not sent: %w", context.Cause(ctx))
}
