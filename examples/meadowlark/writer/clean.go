package writer

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/internal/kit"
)

// Clean does what Delete would have done for a document that was deleted without
// the writer. It deletes its pairs, subtracts them from the counts, and deletes
// its own counts if they are 0. It can be repeated. again means that the document
// exists again, and that the rows beside it are its own.
func (w *Writer) Clean(ctx context.Context, typ, id string) (again bool, err error) {
	// Each transaction checks the document itself. This read finds an existing
	// document even if nothing is left to clean.
	it, err := w.c.Store.Get(ctx, w.c.Table, EntityKey(typ, id))
	if err != nil || it.Exists() {
		return it.Exists(), err
	}
	pairs, err := w.pairs(ctx, id)
	if err != nil {
		return false, err
	}
	for _, p := range pairs {
		if again, err = w.cleanPair(ctx, typ, p); again || err != nil {
			return again, err
		}
	}
	for _, count := range w.counts(typ, id) {
		steps := append(w.goneFor(typ, id), step{op: w.unreferenced(count), means: referenced})
		if Kind(count) == Assign {
			steps = append(steps, w.alone(typ, id)...) // else it is the count of another kind
		}
		failed, err := w.transact(ctx, steps)
		if err != nil {
			return false, fmt.Errorf("deleting a count of a document %s: %w", Named(EntityKey(typ, id)), err)
		}
		if some(failed, changed) {
			return true, nil
		}
	}
	return false, nil
}

func (w *Writer) cleanPair(ctx context.Context, typ string, p pair) (again bool, err error) {
	gone := map[string]bool{}
	for range attempts {
		steps := append(w.goneFor(typ, p.from), w.unlink(p, gone)...)
		failed, err := w.transact(ctx, steps)
		if err != nil {
			return false, fmt.Errorf("deleting a reference of a document %s: %w", Named(p.fref()), err)
		}
		switch {
		case len(failed) == 0:
			return false, nil
		case failed[0].op.Key.Equal(steps[0].op.Key):
			return true, nil
		case failed[0].op.Key.Equal(p.fref()):
			return false, nil // somebody else has cleaned it up
		}
		note(gone, failed)
	}
	return false, fmt.Errorf("deleting a reference of a document %s: %w", Named(p.fref()), ErrBusy)
}

// goneFor holds that a document is still gone.
func (w *Writer) goneFor(typ, id string) []step {
	return []step{{op: w.check(EntityKey(typ, id), absent), means: changed}}
}

// CleanCount deletes the count that a reference was in, given its FREF item as
// it was, if that is 0 and what it counted for is gone: then nobody may refer to
// it any more. Clean left it because somebody did. It can be repeated.
func (w *Writer) CleanCount(ctx context.Context, fref sluice.Item) error {
	count := counterOf(fref)
	if !count.Exists() {
		return nil
	}
	it, err := w.c.Store.Get(ctx, w.c.Table, count)
	if err != nil {
		return err
	}
	if v, _ := it.Lookup("refCount"); v.Str() != "0" {
		return nil // gone, or somebody refers to it
	}
	typ, id := kit.Text(count, "pk"), strings.TrimPrefix(kit.Text(fref, "sk"), toPrefix)
	types := []string{typ}
	if Kind(count) == Assign {
		types = w.c.Resources.kinds(typ)
	}
	var steps []step
	for _, typ := range types {
		steps = append(steps, w.goneFor(typ, id)...)
	}
	// What does not hold any more says that it is in use.
	if _, err := w.transact(ctx, append(steps, step{op: w.unreferenced(count), means: referenced})); err != nil {
		return fmt.Errorf("deleting a count %s: %w", Named(count), err)
	}
	return nil
}
