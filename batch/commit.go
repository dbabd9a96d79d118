package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/quorum"
)

// errGoexit is the result of items whose commit called runtime.Goexit.
var errGoexit = errors.New("batch: the commit function ended its goroutine (runtime.Goexit)")

// run commits a group that has a slot, and releases its callers.
func (g *group[T]) run() {
	// Deferred, because a commit may end the goroutine, and a meter may panic.
	defer g.release()
	start := time.Now()
	defer func() {
		if g.b.commits != nil {
			g.b.commits.Add(len(g.items), failed(g.errs), time.Since(start))
		}
	}()
	ctx, cancel := context.WithDeadline(context.Background(), g.deadline(start))
	defer cancel()
	if g.traced != nil {
		traced, end := g.traced.by.Commit(ctx, g.b.opt.Sink, g.contexts())
		defer func() { end(g.errs) }()
		ctx = traced
	}
	g.call(ctx)
}

// call runs the commit function. A panic, a Goexit, or a wrong number of errors
// becomes the error of every item.
func (g *group[T]) call(ctx context.Context) {
	returned := false
	defer func() {
		if returned {
			return
		}
		err := errGoexit
		if p := recover(); p != nil {
			err = fmt.Errorf("batch: the commit function panicked: %v\n%s", p, debug.Stack())
		}
		g.errs = slices.Repeat([]error{err}, len(g.items))
	}()
	g.errs = g.b.commit(ctx, g.items)
	g.refused = refused(g.errs) // inside the call, because that runs methods of the errors
	returned = true
	if g.errs != nil && len(g.errs) != len(g.items) {
		err := fmt.Errorf("batch: the commit function answered %d items with %d errors, so that none can be matched", len(g.items), len(g.errs))
		g.errs = slices.Repeat([]error{err}, len(g.items))
	}
}

// deadline is Timeout from now, or the callers' latest deadline if that is
// earlier. A caller without a deadline counts as never.
func (g *group[T]) deadline(now time.Time) time.Time {
	var latest time.Time
	own := now.Add(g.b.opt.Timeout)
	for _, c := range g.callers {
		if c.n == 0 {
			continue // withdrawn
		}
		if c.deadline.IsZero() {
			return own
		}
		if c.deadline.After(latest) {
			latest = c.deadline
		}
	}
	if latest.Before(own) {
		return latest
	}
	return own
}

// release passes the slot to the next group and wakes the callers.
func (g *group[T]) release() {
	g.items = nil // a slow caller must not keep durable items in memory
	g.b.mu.Lock()
	g.b.load.ended(g.cuts, g.b.inFlight, g.b.opt.InFlight, g.refused, time.Now())
	g.b.inFlight--
	g.b.dispatch()
	g.b.mu.Unlock()
	members := make([]*quorum.Member, len(g.callers))
	for i := range g.callers {
		members[i] = g.callers[i].member
	}
	quorum.Unpark(members)
	close(g.done)
}

func failed(errs []error) (n int) {
	for _, err := range errs {
		if err != nil {
			n++
		}
	}
	return n
}
