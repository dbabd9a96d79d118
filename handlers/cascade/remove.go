package cascade

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/keyhash"
)

const (
	parentExists = "parent exists again"
	noChildren   = "no children by the parent's attributes"
)

// Remove handles the record of a deleted parent, also of one deleted by its time
// to live. It deletes the children, or sends messages to Work. It is a
// [sluice.Handler].
//
// The stream needs old images if the children's keys use attributes outside of the
// parent's key. A parent without such an attribute has no children of that kind.
// If some kinds fail, a retry processes all kinds again.
func (c *Cascade) Remove(ctx context.Context, rec *sluice.Record) error {
	if rec.Table != c.c.Table { // the parent would not be found in the wrong table
		return sluice.Permanent(fmt.Errorf("a record of table %s came to the cascade of table %s", rec.Table, c.c.Table))
	}
	parent, err := c.parentKey(rec.Keys)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("keys: %w", err))
	}
	var fails []error
	kinds := 0
	for i := range c.c.Children {
		t, ok, err := c.target(&c.c.Children[i], parent, rec.Old, rec.Created)
		if err != nil {
			fails = append(fails, sluice.Permanent(fmt.Errorf("children in table %s: %w", c.c.Children[i].Table, err)))
			continue
		}
		if !ok {
			continue
		}
		kinds++
		p := newPurge(t)
		if back, err := p.parentIsBack(ctx); err != nil || back {
			if back {
				return c.stopped(t)
			}
			return err // other kinds would fail at the same read
		}
		err = c.inline(ctx, t, p)
		if sluice.IsSkip(err) {
			return err
		}
		if err != nil {
			fails = append(fails, err)
		}
	}
	if len(fails) == 0 && kinds == 0 {
		return sluice.Skip(noChildren)
	}
	return join(fails)
}

// inline deletes rows up to the Threshold and hands over the rest.
func (c *Cascade) inline(ctx context.Context, t *target, p *purge) error {
	end := more
	if c.c.Threshold != 0 {
		p.rows = c.c.Threshold
		if p.rows != Unlimited {
			p.until, p.other = c.inlineUntil(ctx), true
		}
		var err error
		if end, err = p.run(ctx); err != nil {
			return err
		}
	}
	switch end {
	case parentBack:
		return c.stopped(t)
	case more:
		if c.c.Threshold == Unlimited {
			return fmt.Errorf("children of %s come into table %s as fast as they are deleted", keyhash.Item(t.parent), t.child.Table)
		}
		return c.send(ctx, t, handOver, 0)
	}
	if t.child.Index != "" {
		return c.sendSweep(ctx, t)
	}
	return nil
}

// inlineUntil returns the time until which Remove begins deletes. It leaves time
// for the message that hands over.
func (c *Cascade) inlineUntil(ctx context.Context) time.Time {
	now := time.Now()
	spend := c.c.InlineTime
	if deadline, ok := ctx.Deadline(); ok {
		spend = min(spend, deadline.Sub(now)/2)
	}
	return now.Add(spend)
}

// stopped is the outcome for a parent that exists again.
func (c *Cascade) stopped(t *target) error {
	c.counts.stops.Add(1, t.child.Table)
	return sluice.Skip(parentExists)
}

func (c *Cascade) sendSweep(ctx context.Context, t *target) error {
	later := *t
	later.sweep = true
	return c.send(ctx, &later, sweep, c.c.SweepAfter)
}

func (c *Cascade) send(ctx context.Context, t *target, why reason, delay time.Duration) error {
	m := t.message()
	m.Delay = delay
	return c.sendMessage(ctx, t, m, why)
}

func (c *Cascade) sendMessage(ctx context.Context, t *target, m sluice.Message, why reason) error {
	if c.c.Send == nil {
		return sluice.Permanent(fmt.Errorf("%s of %s in table %s: there is no Config.Send", why, keyhash.Item(t.parent), t.child.Table))
	}
	if err := c.c.Send(ctx, m); err != nil {
		return fmt.Errorf("%s of %s in table %s: sending the message: %w", why, keyhash.Item(t.parent), t.child.Table, err)
	}
	c.counts.messages.Add(1, t.child.Table, string(why))
	return nil
}
