package projection

import (
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
)

// takes reports whether an item has a document.
func (p *Projection) takes(it sluice.Item) (bool, error) {
	if p.o.Only == nil {
		return true, nil
	}
	ok, err := p.o.Only(it)
	if err != nil {
		return false, fmt.Errorf("which items have documents: %w", err)
	}
	return ok, nil
}

// hadNone reports whether the item had no document before rec. A record with an
// unknown predecessor does not tell.
func (p *Projection) hadNone(rec *sluice.Record) bool {
	if p.o.Only == nil || rec.Origin != sluice.Live || !rec.Old.Exists() {
		return false
	}
	taken, err := p.takes(rec.Old)
	return err == nil && !taken
}

// withdrawn returns the deletion of the document of an item that is removed, or no
// longer has one. It has the version of the change, so that a later one can restore
// the document. A new item has no document to delete. A backfilled item may have
// none; an audit finds leftovers. A current item in place of a change has the
// change's sequence number.
func (p *Projection) withdrawn(s *scratch, rec *sluice.Record) ([]document.Op, error) {
	if rec.EventName == sluice.Insert || isBackfilled(rec) || p.hadNone(rec) {
		return nil, nil
	}
	at, err := p.o.Version.of(rec)
	if err != nil {
		return nil, err
	}
	from := source{image: rec.Old, keys: rec.Keys}
	if !rec.Old.Exists() {
		from.image = rec.New
	}
	ref, text, err := p.place.find(s.text, from)
	if s.text = text; err != nil {
		switch {
		case rec.EventName == sluice.Snapshot && !rec.Old.Exists():
			return nil, fmt.Errorf("%w; the place of its old document is unknown: run an audit to find it", err)
		case !rec.Old.Exists():
			return nil, fmt.Errorf("%w; it came without its old image: %s", err, viewRemedy)
		case rec.EventName == sluice.Remove:
			return nil, err
		}
		return nil, nil // the old image had no place, and no document
	}
	gone, err := p.gone(s, ref, at, rec, from)
	return append(s.ops[:0], gone), err
}
