package cascade

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
)

// Work handles the messages of Remove and its own: it deletes the children of the
// parent in the message. At the end of its time it sends the same message again
// for the rest. It is a [sluice.Handler], and the same as Worker(c).
func (c *Cascade) Work(ctx context.Context, rec *sluice.Record) error {
	return worker{c.c.Table: {c}}.work(ctx, rec)
}

// Worker returns the handler for the messages of several Cascades that share a
// queue. Cascades of the same table must have different names for all of their
// children.
func Worker(cs ...*Cascade) (sluice.Handler, error) {
	w := make(worker)
	seen := make(map[head]bool)
	for _, c := range cs {
		for _, child := range c.c.Children {
			h := head{c.c.Table, child.Name}
			if seen[h] {
				return nil, fmt.Errorf("cascade: two Cascades of table %s have children of the name %q: messages could not tell them apart", h.table, h.child)
			}
			seen[h] = true
		}
		w[c.c.Table] = append(w[c.c.Table], c)
	}
	if len(w) == 0 {
		return nil, fmt.Errorf("cascade: a Worker needs a Cascade")
	}
	return w.work, nil
}

// worker finds the Cascades of a table.
type worker map[string][]*Cascade

func (w worker) find(h head) (*Cascade, *Child, error) {
	for _, c := range w[h.table] {
		for i := range c.c.Children {
			if c.c.Children[i].Name == h.child {
				return c, &c.c.Children[i], nil
			}
		}
	}
	if len(w[h.table]) == 0 {
		return nil, nil, fmt.Errorf("no Cascade of this worker is of table %q", h.table)
	}
	return nil, nil, fmt.Errorf("parents of table %q have no children of the name %q here", h.table, h.child)
}

func (w worker) work(ctx context.Context, rec *sluice.Record) error {
	m, ok := rec.Message()
	if !ok {
		return sluice.Permanent(fmt.Errorf("a worker is for the messages of a queue, not for a %s of table %s", rec.EventName, rec.Table))
	}
	c, t, err := w.target(rec)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("message %s of queue %s: %w", rec.EventID, rec.Table, err))
	}
	p := newPurge(t)
	p.told = true
	p.until = c.workUntil(ctx)
	if back, err := p.parentIsBack(ctx); err != nil || back {
		if back {
			return c.stopped(t)
		}
		return err
	}
	end, err := p.run(ctx)
	if err != nil {
		return err
	}
	switch {
	case end == parentBack:
		return c.stopped(t)
	case end == more:
		return c.sendMessage(ctx, t, sluice.Message{Body: m.Body, Attributes: m.Attributes}, proceed)
	case t.sweep:
		c.counts.sweeps.Add(1, t.child.Table)
		c.counts.swept.Add(float64(p.deleted), t.child.Table)
		return nil
	}
	return c.sendSweep(ctx, t)
}

// workUntil returns the time until which Work begins deletes for a message: Margin
// before the end of its time, but not before half of the time. A message that is
// sent again without progress would repeat for ever.
func (c *Cascade) workUntil(ctx context.Context) time.Time {
	now := time.Now()
	spend := c.c.Budget
	if deadline, ok := ctx.Deadline(); ok {
		spend = min(spend, deadline.Sub(now))
	}
	return now.Add(spend - min(c.c.Margin, spend/2))
}

func (w worker) target(rec *sluice.Record) (*Cascade, *target, error) {
	h, err := headOf(rec.New)
	if err != nil {
		return nil, nil, err
	}
	c, child, err := w.find(h)
	if err != nil {
		return nil, nil, err
	}
	t, err := c.parse(rec.New, child)
	return c, t, err
}
