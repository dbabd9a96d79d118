package writer

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
)

// Create writes a document that is not there, or fails with an ErrReference, an
// ErrExists or an [*InvalidError]. d.Rev is not read.
//
// A call whose error says nothing of that kind may have been done all the same.
func (w *Writer) Create(ctx context.Context, d Document) error {
	return w.write(ctx, "creating", d, w.create)
}

// Update replaces an existing document. Of two concurrent updates the later one
// stays.
func (w *Writer) Update(ctx context.Context, d Document) error {
	return w.write(ctx, "updating", d, w.update)
}

// write saves a valid document.
func (w *Writer) write(ctx context.Context, doing string, d Document, begin func(context.Context, Document) ([]step, error)) error {
	if err := d.validate(w.c.Resources); err != nil {
		return err
	}
	if err := w.save(ctx, d, begin); err != nil {
		return fmt.Errorf("%s %s %s: %w", doing, d.Type, d.ID(), err)
	}
	return nil
}

// save writes d with its pairs. begin returns the steps of the document itself.
func (w *Writer) save(ctx context.Context, d Document, begin func(context.Context, Document) ([]step, error)) error {
	gone := map[string]bool{}
	for range attempts {
		steps, err := begin(ctx, d)
		if err != nil {
			return err
		}
		// The pairs are read after the document: when it is still that one as
		// they are written, nobody has changed them since, but for a clean-up.
		pairs, err := w.pairs(ctx, d.ID())
		if err != nil {
			return err
		}
		failed, err := w.transact(ctx, append(steps, w.refer(d, pairs, gone)...))
		if err != nil || len(failed) == 0 {
			return err
		}
		if some(failed, exists) {
			return ErrExists
		}
		if !some(failed, changed) {
			var absent []Reference
			for _, s := range failed {
				if s.means == missing {
					absent = append(absent, s.ref)
				}
			}
			if len(absent) > 0 {
				return &ReferenceError{absent}
			}
		}
		note(gone, failed)
	}
	return ErrBusy
}

// create begins a document that is not there.
func (w *Writer) create(_ context.Context, d Document) ([]step, error) {
	d.Rev = w.rev(0)
	id, resource := d.ID(), w.c.Resources[d.Type]
	steps := []step{{op: w.put(d.item(), absent), means: exists}}
	// Counts that are there already are kept: the document was deleted past the
	// writer, and others still refer to it.
	if resource.Referenced || resource.Supertype != "" {
		steps = append(steps, step{op: w.count(key(d.Type, guardPrefix+id), 0)})
	}
	if resource.Supertype != "" {
		steps = append(steps, step{op: w.count(key(resource.Supertype, assignPrefix+id), 0)})
	}
	return append(steps, w.alone(d.Type, id)...), nil
}

// alone holds that no other kind of the same has the id.
func (w *Writer) alone(typ, id string) (steps []step) {
	for _, sibling := range w.c.Resources.siblings(typ) {
		steps = append(steps, step{op: w.check(EntityKey(sibling, id), absent), means: exists})
	}
	return steps
}

// update begins a document in the place of one.
func (w *Writer) update(ctx context.Context, d Document) ([]step, error) {
	old, err := w.c.Store.Get(ctx, w.c.Table, EntityKey(d.Type, d.ID()))
	if err != nil {
		return nil, err
	}
	if !old.Exists() {
		return nil, ErrNotFound
	}
	was := Read(old)
	if was.NaturalKey != d.NaturalKey {
		return nil, invalid("its natural key is %q and cannot become %q", was.NaturalKey, d.NaturalKey)
	}
	d.Rev = w.rev(was.Rev)
	return []step{{op: unchanged(dynamo.Put(w.c.Table, d.item()), old), means: changed}}, nil
}

// unchanged makes op conditional on the document as it was read.
func unchanged(op dynamo.Op, old sluice.Item) dynamo.Op {
	return kit.Same(op, old, "sk", "rev")
}

// refer turns the existing pairs into d's references: it checks descriptors, links
// new targets, and unlinks old ones.
func (w *Writer) refer(d Document, pairs []pair, gone map[string]bool) (steps []step) {
	self := d.ID()
	var done []Reference
	linked := map[string]sluice.Item{} // key of the count, by id
	for _, p := range pairs {
		linked[p.to] = p.counter
	}
	kept := map[string]bool{}
	for _, ref := range d.References {
		id := ID(ref.NaturalKey)
		if id == self || slices.Contains(done, ref) {
			continue
		}
		done = append(done, ref)
		if isDescriptor(ref.Type) {
			steps = append(steps, step{op: w.check(EntityKey(ref.Type, id), present), means: missing, ref: ref})
			continue
		}
		counter, ok := linked[id]
		switch p := (pair{self, id, w.c.Resources.counter(ref)}); {
		case !ok:
			linked[id] = p.counter
			steps = append(steps, w.link(d, ref, p)...)
		case !counter.Equal(p.counter):
			// Another name of a linked target, such as School and
			// EducationOrganization: one pair is enough to keep it, but it must
			// have this name too.
			steps = append(steps, step{op: w.check(p.counter, present), means: missing, ref: ref})
		}
		kept[id] = true
	}
	for _, p := range pairs {
		if !kept[p.to] {
			steps = append(steps, w.unlink(p, gone)...)
			continue
		}
		// A clean-up may be under way that takes it for one of a document that
		// is gone.
		steps = append(steps, step{op: w.check(p.fref(), present), means: changed})
	}
	return steps
}
