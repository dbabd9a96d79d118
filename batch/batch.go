package batch

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluicehq/sluice/internal/commits"
	"github.com/sluicehq/sluice/internal/quorum"
)

// Batcher groups concurrent calls into commits. Its methods are safe for
// concurrent use. It has no goroutine and nothing to close.
type Batcher[T any] struct {
	commit  func(context.Context, []T) []error
	size    func(T) int
	opt     Options
	commits *commits.Commits

	// Locks are taken in this order: mu, then a quorum.Scope's own. Members
	// are parked and unparked, and commits run, without mu.
	mu       sync.Mutex
	open     *group[T]   // takes more items; nil when the next caller begins one
	ready    []*group[T] // due or full, wait for a free slot; the oldest first
	inFlight int
	most     int // of inFlight, as SetInFlight says
	load     load
}

// New returns a Batcher. commit makes items durable and returns one error per
// item, or nil when all succeeded. size returns an item's bytes; nil counts
// no bytes.
//
// commit runs on the goroutine of one of the callers, up to InFlight times at
// once. Its context is the Batcher's own: it ends after Timeout or at the
// latest deadline among the callers, whichever is earlier; no caller cancels
// it, and it carries no caller's values. commit may keep the slice. When it
// panics, ends its goroutine, or returns a wrong number of errors, every item
// fails. When an item's error is sluice.Overloaded, fewer commits run at a time,
// down to one and then with pauses of up to 4 s, until fewer are refused.
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

// SetInFlight has at most n commits run at a time from now on, 1 at least and
// Options.InFlight at most; those that run end first. It is for a commit function
// that learns how much what it calls can bear: were it to wait itself, its items
// would be cut off from those that come meanwhile, and commits become smaller.
func (b *Batcher[T]) SetInFlight(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.most = min(max(n, 1), b.opt.InFlight)
	b.dispatch()
}

// Do returns once item is durable (nil) or has failed.
//
// When ctx ends before the item is sent, the item is withdrawn and the error
// wraps ctx's cause. Once it is sent, Do waits for the result whatever becomes
// of ctx: were it to return early, the caller's next change of the same thing
// could overtake this one.
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

// DoAll is Do for several items of one caller, in order; one error per item,
// or nil when all are durable. Items that do not fit in one commit go in
// several, one after another, also after a failure. Items whose order does not
// matter arrive sooner through Do from several goroutines. Without items it
// returns nil at once.
func (b *Batcher[T]) DoAll(ctx context.Context, items []T) []error { return b.doAll(ctx, items, false) }

// DoAllNow is DoAll that waits for no other callers: what is due only when
// nobody is left who could join is due at once. It is for items that their
// caller has cut to the size of commits.
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
// group is full when there are more; it is due when now says so.
func (b *Batcher[T]) joinSome(ctx context.Context, m *quorum.Member, items []T, sizes []int, from int, now bool) (g *group[T], n, to int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g = b.groupFor(sizes[from])
	n = g.join(ctx, m)
	for to = from; to < len(items) && (to == from || g.fits(sizes[to])); to++ {
		g.add(n, items[to], sizes[to])
	}
	switch { // what makes the group due is last: it may be sent at once
	case to < len(items):
		g.close()
	case now:
		g.due()
	default:
		g.joined()
	}
	return g, n, to
}

// sizesOf calls the size func outside the lock: it is a user's and may panic.
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
