package rollup

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/brake"
)

const (
	defaultDeletes = 1000 // counters that a recount may lower
	defaultPercent = 5    // of the parents
)

// lowerings holds corrections that lower counters until all of them are known.
type lowerings struct {
	held     []look
	lowered  int
	barren   int  // parents of lowered counters without a child
	fertile  int  // parents with a child
	over     bool // more than MaxDeletes: no further one is held
	released bool // counters may be lowered
}

// lowers reports whether a correction moves a counter towards 0 or beyond. A
// negative count is raised: no children can make it.
func (r *recount) lowers(l look) bool {
	if l.counter < 0 {
		return r.Of != "" && l.sum > l.counter
	}
	return l.counter > 0 && l.sum < l.counter
}

// hold handles a counter that must be lowered.
func (r *recount) hold(l look) {
	b := &r.brake
	b.lowered++
	if l.children == 0 {
		b.barren++
	}
	switch {
	case r.DryRun:
		r.done.Corrected++
		r.Found(r.correctionOf(l))
	case b.over:
		r.leave(l)
	default:
		b.held = append(b.held, l)
		if b.over = b.lowered > r.mostDeletes(); b.over {
			r.leaveAll()
		}
	}
}

// leave reports a counter that stays unchanged.
func (r *recount) leave(l look) {
	c := r.correctionOf(l)
	c.Held = true
	r.done.Held++
	r.Found(c)
}

func (r *recount) leaveAll() {
	for _, l := range r.brake.held {
		r.leave(l)
	}
	r.brake.held = nil
}

// mostDeletes is the number of counters that may be lowered, whatever their share.
func (r *recount) mostDeletes() int {
	if r.MaxDeletes > 0 {
		return r.MaxDeletes
	}
	return defaultDeletes
}

// verdict returns why counters may not be lowered, or nil.
func (r *recount) verdict() error {
	b := &r.brake
	e := &brake.Error{Lowered: b.lowered, Parents: r.done.Parents, Allowed: r.mostDeletes()}
	if r.MaxDeletes == 0 {
		e.Allowed = min(e.Allowed, max(1, r.done.Parents*defaultPercent/100))
	}
	if !r.TrustTables && b.barren > b.fertile {
		e.Empty = b.fertile == 0
		e.MostlyEmpty = !e.Empty
	}
	if e.Empty || e.MostlyEmpty || b.lowered > e.Allowed {
		return e
	}
	return nil
}

// release lowers the held counters, unless the verdict forbids it.
func (r *recount) release(ctx context.Context) error {
	if r.done.Brake = r.verdict(); r.DryRun {
		return nil
	}
	if r.done.Brake != nil {
		r.leaveAll()
		return fmt.Errorf("rollup: Recount of %q of table %s: %w", r.Attribute, r.Table, r.done.Brake)
	}
	r.brake.released = true
	var again []look
	for _, before := range r.brake.held {
		// A child that was never counted may end without moving the counter.
		now, err := r.look(ctx, before.key)
		if err != nil {
			return err
		}
		if now.seen == before.seen {
			if err = r.correct(ctx, now); err == nil {
				continue
			}
			if !dynamo.IsCondition(err) {
				return err
			}
		}
		again = append(again, now)
	}
	return r.repair(ctx, again)
}
