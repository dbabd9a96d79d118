package writer

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice"
)

// Delete deletes a document and its references, or fails with an ErrReferenced
// or an ErrNotFound.
func (w *Writer) Delete(ctx context.Context, typ, id string) error {
	if err := w.deleteEntity(ctx, typ, id); err != nil {
		return fmt.Errorf("deleting %s %s: %w", typ, id, err)
	}
	return nil
}

func (w *Writer) deleteEntity(ctx context.Context, typ, id string) error {
	gone := map[string]bool{}
	held := false
	for range attempts {
		old, err := w.c.Store.Get(ctx, w.c.Table, EntityKey(typ, id))
		if err != nil {
			return err
		}
		if !old.Exists() {
			return ErrNotFound
		}
		pairs, err := w.pairs(ctx, id)
		if err != nil {
			return err
		}
		steps := []step{{op: unchanged(w.delete(EntityKey(typ, id)), old), means: changed}}
		for _, count := range w.counts(typ, id) {
			steps = append(steps, step{op: w.unreferenced(count), means: referenced})
		}
		for _, p := range pairs {
			steps = append(steps, w.unlink(p, gone)...)
		}
		failed, err := w.transact(ctx, steps)
		if err != nil || len(failed) == 0 {
			return err
		}
		if held = some(failed, referenced); held {
			keys, err := w.ForeignKeys(ctx, id)
			if err != nil {
				return err
			}
			if len(keys) > 0 {
				return &ReferencedError{keys}
			}
			// Who referred to it has left just now.
		}
		note(gone, failed)
	}
	if held {
		return &ReferencedError{} // a count that nothing explains
	}
	return ErrBusy
}

// counts are the keys of a document's counts.
func (w *Writer) counts(typ, id string) []sluice.Item {
	if isDescriptor(typ) {
		return nil
	}
	keys := []sluice.Item{key(typ, guardPrefix+id)}
	if super := w.c.Resources[typ].Supertype; super != "" {
		keys = append(keys, key(super, assignPrefix+id))
	}
	return keys
}
