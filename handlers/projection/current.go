package projection

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/routed"
)

// outdated reports whether the tombstone of a later deletion may have been swept.
// A backfilled item has no place among the changes.
func outdated(rec *sluice.Record) bool {
	return rec.Origin != sluice.Backfilled && routed.Late(rec)
}

// current returns the writes for an outdated record: they make the index show the
// current item. The record's images may be days old, and the index may have
// forgotten a deletion since. The current item is at least as new as the record.
// So the writes use the record's sequence: later changes stay, whether they come
// before or after. An item that the route no longer takes has no document.
func (p *Projection) current(ctx context.Context, s *scratch, rec *sluice.Record) ([]document.Op, error) {
	it, err := p.read(ctx, rec)
	if err != nil {
		return nil, err
	}
	s.writer.body, s.tombstone.body = p.body, p.tombstone
	ops, err := p.ofItem(s, rec, it)
	if err != nil {
		return nil, permanent(rec, err)
	}
	return ops, nil
}

// lasting removes from a redriven record's writes the document that the item no
// longer has. By attribute only the index remembers deletions, for an hour or
// less: the write could restore the document.
func (p *Projection) lasting(ctx context.Context, rec *sluice.Record, ops []document.Op) ([]document.Op, error) {
	if !rec.New.Exists() {
		return ops, nil // every op is a deletion
	}
	was, ok, err := p.placeOf(rec, rec.New)
	if err != nil || !ok {
		return ops, err
	}
	it, err := p.read(ctx, rec)
	if err != nil {
		return nil, err
	}
	if it.Exists() {
		now, ok, err := p.placeOf(rec, it)
		if err != nil || ok && now == was {
			return ops, err
		}
	}
	return slices.DeleteFunc(ops, func(op document.Op) bool { return op.Ref() == was }), nil
}

// placeOf returns the place of the document of an item of rec; false if it has
// none.
func (p *Projection) placeOf(rec *sluice.Record, it sluice.Item) (document.Ref, bool, error) {
	taken, err := p.takes(it)
	if err != nil {
		return document.Ref{}, false, permanent(rec, err)
	}
	if !taken {
		return document.Ref{}, false, nil
	}
	ref, _, err := p.place.find(nil, source{image: it, keys: rec.Keys})
	return ref, err == nil, nil
}

// read returns the current item of rec: the absent Item if it does not exist, or
// if the route no longer takes it.
func (p *Projection) read(ctx context.Context, rec *sluice.Record) (sluice.Item, error) {
	it, err := p.o.Current(ctx, rec)
	if err != nil {
		return it, fmt.Errorf("projection: reading the item as it is now: %w", err)
	}
	if takes := routed.From(ctx); takes != nil && it.Exists() {
		ok, err := takes(rec, it)
		switch {
		case err != nil:
			return it, permanent(rec, err)
		case !ok:
			return sluice.Item{}, nil
		}
	}
	return it, nil
}

func (p *Projection) ofItem(s *scratch, rec *sluice.Record, it sluice.Item) (ops []document.Op, err error) {
	at, err := p.o.Version.of(rec)
	if err != nil {
		return nil, err
	}
	taken := false
	if it.Exists() {
		if taken, err = p.takes(it); err != nil {
			return nil, err
		}
	}
	ops = s.ops[:0]
	if taken {
		from := source{image: it, keys: rec.Keys}
		var ref document.Ref
		if ref, s.text, err = p.place.find(s.text, from); err != nil {
			return nil, err
		}
		if err := s.writer.write(from); err != nil {
			return nil, err
		}
		ops = append(ops, p.put(s, ref, at))
	}
	// Documents at places that the record names and the item no longer has.
	images := slices.DeleteFunc([]sluice.Item{rec.New, rec.Old}, func(it sluice.Item) bool { return !it.Exists() })
	for _, image := range append(images, sluice.Item{}) { // last, the place by the keys alone
		from := source{image: image, keys: rec.Keys}
		ref, text, err := p.place.find(s.text, from)
		s.text = text
		if err != nil || slices.ContainsFunc(ops, func(op document.Op) bool { return op.Ref() == ref }) {
			continue // an image without a place had no document
		}
		gone, err := p.gone(s, ref, at, rec, from)
		if err != nil {
			return nil, err
		}
		gone.Body = bytes.Clone(gone.Body) // the next op reuses the same memory
		ops = append(ops, gone)
	}
	return ops, nil
}
