package batch

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/quorum"
)

// group is one batch: open, then ready, then sending, then done. A due group is
// ready and still open, so it grows while all slots are taken.
type group[T any] struct {
	b       *Batcher[T]
	items   []T
	bytes   int
	callers []caller
	traced  *traced         // nil: no caller is
	scopes  []*quorum.Scope // that watch the group
	linger  *time.Timer

	ready   bool
	sending bool
	refused bool          // an item was refused for load
	cuts    int           // load.cuts at sending
	send    chan struct{} // the caller that takes the token runs the commit
	done    chan struct{} // closed when errs is set
	errs    []error       // nil: all are durable
}

// caller is one call of Do, or part of a call of DoAll.
type caller struct {
	member   *quorum.Member
	deadline time.Time // zero: none
	from, n  int       // its items
	bytes    int       // of them
}

// groupFor returns the group that takes an item of size next; the caller holds mu.
func (b *Batcher[T]) groupFor(size int) *group[T] {
	if b.open != nil && !b.open.fits(size) {
		b.open.close()
	}
	if b.open == nil {
		b.open = &group[T]{b: b, send: make(chan struct{}, 1), done: make(chan struct{})}
	}
	return b.open
}

// fits reports whether an item of size can join; an empty group takes any.
func (g *group[T]) fits(size int) bool {
	if len(g.items) == 0 {
		return true
	}
	return len(g.items) < g.b.opt.MaxItems && (g.b.opt.MaxBytes == 0 || g.bytes+size <= g.b.opt.MaxBytes)
}

// join adds a caller without items yet and returns its number.
func (g *group[T]) join(ctx context.Context, m *quorum.Member) int {
	c := caller{member: m, from: len(g.items)}
	c.deadline, _ = ctx.Deadline()
	if m != nil && m.Tracer != nil && !g.b.opt.Untraced {
		g.trace(ctx, m.Tracer)
	}
	g.callers = append(g.callers, c)
	// A ready group needs no due signal. A caller may park only once its scope
	// watches.
	if m != nil && !g.ready && m.Scope.Watch(g) {
		g.scopes = append(g.scopes, m.Scope)
	}
	return len(g.callers) - 1
}

// add appends an item for the last caller.
func (g *group[T]) add(n int, item T, size int) {
	g.items = append(g.items, item)
	g.bytes += size
	c := &g.callers[n]
	c.n++
	c.bytes += size
}

// joined closes the group when it is full, and makes sure that it becomes due.
func (g *group[T]) joined() {
	o := &g.b.opt
	switch {
	case len(g.items) >= o.MaxItems, o.MaxBytes > 0 && g.bytes >= o.MaxBytes:
		g.close()
	case g.linger == nil && !g.ready && o.Linger > 0:
		g.linger = time.AfterFunc(o.Linger, g.MarkDue)
	}
}

// MarkDue makes the group ready to be sent with the next free slot.
func (g *group[T]) MarkDue() {
	g.b.mu.Lock()
	defer g.b.mu.Unlock()
	g.due()
}

func (g *group[T]) due() {
	if g.ready || len(g.items) == 0 {
		return // all callers of an empty group have withdrawn
	}
	g.ready = true
	g.b.ready = append(g.b.ready, g)
	g.b.dispatch()
}

// close stops the group from taking items.
func (g *group[T]) close() {
	if g.b.open == g {
		g.b.open = nil
	}
	g.due()
}

// dispatch gives free slots to the groups that waited longest.
func (b *Batcher[T]) dispatch() {
	for len(b.ready) > 0 && b.inFlight < b.slots() {
		g := b.ready[0]
		b.ready = slices.Delete(b.ready, 0, 1)
		b.inFlight++
		if b.open == g {
			b.open = nil
		}
		g.sending, g.cuts = true, b.load.cuts
		g.forget()
		g.send <- struct{}{}
	}
}

// forget cancels everything that could still make the group due.
func (g *group[T]) forget() {
	if g.linger != nil {
		g.linger.Stop()
	}
	for _, s := range g.scopes {
		s.Unwatch(g)
	}
	g.scopes = nil
}

// wait parks caller n until the group is done, or until ctx ends and the caller
// withdraws: then it returns false. The caller that gets the token sends for all.
func (g *group[T]) wait(ctx context.Context, m *quorum.Member, n int) bool {
	m.Park()
	cancelled := ctx.Done()
	for {
		select {
		case <-g.done:
			return true
		case <-g.send:
			g.run()
			return true
		case <-cancelled:
			if g.withdraw(n) {
				quorum.Unpark([]*quorum.Member{m})
				return false
			}
			cancelled = nil
		}
	}
}

// withdraw removes the items of caller n, unless they are being sent.
func (g *group[T]) withdraw(n int) bool {
	g.b.mu.Lock()
	defer g.b.mu.Unlock()
	if g.sending {
		return false
	}
	c := &g.callers[n]
	g.bytes -= c.bytes
	g.items = slices.Delete(g.items, c.from, c.from+c.n)
	for i := n + 1; i < len(g.callers); i++ {
		g.callers[i].from -= c.n
	}
	*c = caller{}
	if len(g.items) == 0 {
		// No caller is left to send it.
		g.forget()
		if g.b.open == g {
			g.b.open = nil
		}
		if i := slices.Index(g.b.ready, g); i >= 0 {
			g.b.ready = slices.Delete(g.b.ready, i, i+1)
		}
	}
	return true
}

// err is the result of the i-th item of caller n of a done group.
func (g *group[T]) err(n, i int) error {
	if g.errs == nil {
		return nil
	}
	return g.errs[g.callers[n].from+i]
}
