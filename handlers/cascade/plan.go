package cascade

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/keyhash"
)

// Row is one row of a dry run.
type Row struct {
	Table string
	Key   sluice.Item
}

// Plan yields the rows that a deletion of the parent would delete now, without
// deleting them. parent is the item, or its key if the children's keys need no
// other attribute. Plan does not check that the parent exists. It omits
// grandchildren, which their own parents' records delete. An error ends it. It
// reads rows page by page as the caller takes them.
func (c *Cascade) Plan(ctx context.Context, parent sluice.Item) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		key, err := c.parentKey(parent)
		if err != nil {
			yield(Row{}, fmt.Errorf("cascade: %w", err))
			return
		}
		image := parent
		if parent.Len() == len(c.c.Key) {
			image = sluice.Item{} // the key lacks attributes that the item may have
		}
		for i := range c.c.Children {
			t, ok, err := c.target(&c.c.Children[i], key, image, time.Now())
			if err != nil {
				yield(Row{}, fmt.Errorf("cascade: children in table %s: %w", c.c.Children[i].Table, err))
				return
			}
			if ok && !t.plan(ctx, yield) {
				return
			}
		}
	}
}

// plan yields the rows of one kind. It returns false at the end of the iteration.
func (t *target) plan(ctx context.Context, yield func(Row, error) bool) bool {
	p := newPurge(t)
	q := t.query()
	for {
		page, err := t.c.c.Query(ctx, q)
		var keys []sluice.Item
		if err == nil {
			keys, err = p.candidates(page.Items)
		}
		if err == nil && t.child.Index != "" {
			keys, err = p.children(ctx, keys)
		}
		if err != nil {
			yield(Row{}, fmt.Errorf("cascade: planning table %s: %w", t.child.Table, err))
			return false
		}
		for _, key := range keys {
			if !yield(Row{t.child.Table, key}, nil) {
				return false
			}
		}
		if q.After = page.Next; !q.After.Exists() {
			break
		}
	}
	if f := p.failures; f.rows > 0 {
		return yield(Row{}, fmt.Errorf("cascade: planning table %s: rows that stay: %d, the first %s: %w", t.child.Table, f.rows, keyhash.Item(f.key), f.firstBad))
	}
	return true
}

// DryRun writes the rows of a Plan, one "<table> <key>" per line, and a last line
// with their number. It returns that number. Whether the parent exists only
// affects the last line.
func (c *Cascade) DryRun(ctx context.Context, w io.Writer, parent sluice.Item) (rows int, err error) {
	out := bufio.NewWriter(w)
	for row, err := range c.Plan(ctx, parent) {
		if err != nil {
			out.Flush() //nolint:errcheck // the plan's error is the one to tell
			return rows, err
		}
		rows++
		if _, err := fmt.Fprintf(out, "%s %s\n", row.Table, row.Key.Raw()); err != nil {
			return rows, err
		}
	}
	key, err := c.parentKey(parent)
	if err != nil {
		return rows, err
	}
	it, err := c.c.Get(ctx, c.c.Table, key)
	if err != nil {
		out.Flush() //nolint:errcheck // the read's error is the one to tell
		return rows, fmt.Errorf("cascade: reading the parent: %w", err)
	}
	state := "which is gone"
	if it.Exists() {
		state = "which still exists: until it is deleted, none goes"
	}
	are := "rows are children"
	if rows == 1 {
		are = "row is a child"
	}
	fmt.Fprintf(out, "%d %s of %s %s, %s\n", rows, are, c.c.Table, key.Raw(), state)
	return rows, out.Flush()
}
