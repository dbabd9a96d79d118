package reindex

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/docrules"
)

// Swap has the alias lead to the new index, after another comparison: what
// differs is a [*NotEqualError], unless force leaves the comparison out. Writes go
// on to both. Once swapped, another call does nothing.
func (r Reindex) Swap(ctx context.Context, force bool) error {
	r = r.withDefaults()
	st, err := r.Status(ctx)
	if err != nil || st.Stage == Swapped {
		return err
	}
	if st.Stage != Filled {
		return fmt.Errorf("reindex: %s is %v, want filled: run sluice reindex start again", r.Alias, st.Stage)
	}
	if !force {
		c, err := r.compare(ctx, st)
		if err != nil {
			return err
		}
		if !c.Equal() {
			return &NotEqualError{Comparison: c}
		}
	}
	return r.exchange(ctx, st)
}

// Rollback has the alias lead to the old index again, without a comparison.
// Writes go on to both, so that Swap may come again. Once rolled back, another
// call does nothing.
func (r Reindex) Rollback(ctx context.Context) error {
	r = r.withDefaults()
	st, err := r.Status(ctx)
	if err != nil || st.Stage == Filled {
		return err
	}
	if st.Stage != Swapped {
		return fmt.Errorf("reindex: %s is %v, and there is nothing to roll back: no second index is kept equal", r.Alias, st.Stage)
	}
	return r.exchange(ctx, st)
}

// exchange lets the two indices change places.
func (r Reindex) exchange(ctx context.Context, st Status) error {
	r.Step(fmt.Sprintf("have %s lead to %s", r.Alias, st.Other))
	also := r.Alias + docrules.AlsoSuffix
	return wrap(r.Cluster.Point(ctx,
		map[string]string{r.Alias: st.Current, also: st.Other},
		map[string]string{r.Alias: st.Other, also: st.Current}))
}

// Finish ends the writes to the old index, after which no rollback is possible. It
// deletes the index if asked to, once no writer knows of it. Another call
// completes the remaining steps.
func (r Reindex) Finish(ctx context.Context, deleteOld bool) error {
	r = r.withDefaults()
	st, err := r.Status(ctx)
	if err != nil {
		return err
	}
	switch st.Stage {
	case Swapped:
		if err := r.writeOne(ctx, st); err != nil {
			return err
		}
	case Idle:
		if st.meta, _, err = r.mark(ctx, st.Current); err != nil {
			return err
		}
	default:
		return fmt.Errorf("reindex: %s is %v, want swapped: swap it, or abandon it", r.Alias, st.Stage)
	}
	if !deleteOld || st.meta.Alias != r.Alias {
		return nil
	}
	return r.delete(ctx, st.meta.From)
}

// Abandon ends the writes to the new index and deletes it if asked to, once no
// writer knows of it. Another call completes the remaining steps.
func (r Reindex) Abandon(ctx context.Context, deleteNew bool) error {
	r = r.withDefaults()
	st, err := r.Status(ctx)
	if err != nil {
		return err
	}
	var left []string
	switch st.Stage {
	case Idle:
		if left, err = r.abandoned(ctx, st.Current); err != nil {
			return err
		}
	case Swapped:
		return fmt.Errorf("reindex: %s leads to %s, the new index: roll back first", r.Alias, st.Current)
	default:
		if err := r.writeOne(ctx, st); err != nil {
			return err
		}
		left = []string{st.Other}
	}
	if !deleteNew {
		return nil
	}
	return r.delete(ctx, left...)
}

func (r Reindex) writeOne(ctx context.Context, st Status) error {
	r.Step("end the writes to " + st.Other)
	return wrap(r.Cluster.Point(ctx, map[string]string{st.alias: st.Other}, nil))
}

// abandoned returns the indices that were to succeed current, and are not used.
func (r Reindex) abandoned(ctx context.Context, current string) (left []string, err error) {
	for n := number(r.Alias, current) + 1; ; n++ {
		m, found, err := r.mark(ctx, numbered(r.Alias, n))
		if err != nil || !found {
			return left, err
		}
		if m.Alias == r.Alias && m.From == current {
			left = append(left, numbered(r.Alias, n))
		}
	}
}

// delete deletes indices when the last write to them is over: a write that came
// later would make an index of that name, and no mapping.
func (r Reindex) delete(ctx context.Context, indices ...string) error {
	waited := false
	for _, index := range indices {
		_, found, err := r.Cluster.Meta(ctx, index)
		if err != nil {
			return wrap(err)
		}
		if !found {
			continue
		}
		if !waited {
			d := r.TTL + r.TTL/10 + r.Longest
			r.Step(fmt.Sprintf("wait %v until no writer writes to %s", d, index))
			if err := backoff.Sleep(ctx, d); err != nil {
				return err
			}
			waited = true
		}
		behind, err := r.Cluster.Behind(ctx, r.Alias)
		if err != nil {
			return wrap(err)
		}
		if slices.Contains(behind[r.Alias], index) {
			return fmt.Errorf("reindex: %[2]s is not deleted: the alias %[1]s leads to it again", r.Alias, index)
		}
		r.Step("delete index " + index)
		if err := r.Cluster.Delete(ctx, index); err != nil {
			return wrap(err)
		}
	}
	return nil
}
