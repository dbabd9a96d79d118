package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/backoff"
)

// maxUnseen bounds the documents that a second scan looks for.
const maxUnseen = 100_000

// searchGhosts looks at every document of the indices that no item of the scan
// gave.
func (r *run) searchGhosts(ctx context.Context) error {
	s := search{run: r, done: map[string]bool{}, unseen: map[document.Ref]document.Doc{}}
	for _, index := range slices.Sorted(maps.Keys(r.indices)) {
		if err := s.list(ctx, index); err != nil {
			return err
		}
		if err := s.tombstones(ctx, index); err != nil {
			return err
		}
	}
	r.seen = nil
	return r.scanFor(ctx, s.unseen)
}

// search is one walk through all indices.
type search struct {
	*run
	done   map[string]bool // indices that were listed, by whichever name
	batch  []unseen        // to be looked at
	unseen map[document.Ref]document.Doc
}

// unseen is a document that the scan did not give.
type unseen struct {
	place document.Ref // in the index itself
	doc   document.Doc // by the name that was listed
}

// list lists an index or alias.
func (s *search) list(ctx context.Context, name string) error {
	if err := s.unmoved(ctx, name); err != nil {
		return err
	}
	indices, err := s.leadsTo(ctx, name)
	if err != nil {
		return err
	}
	for doc, err := range s.List(ctx, name) {
		if err != nil {
			return fmt.Errorf("audit: listing index %s: %w", name, err)
		}
		if s.Behind != nil && !slices.Contains(indices, doc.Index) {
			return moved(name, indices, []string{doc.Index})
		}
		if s.done[doc.Index] {
			continue
		}
		if s.result.Listed++; s.result.Listed%maxBatch == 0 {
			s.Progress(s.result)
		}
		one := s.unseenAt(name, doc)
		if s.seen.has(one.place) {
			continue
		}
		if s.batch = append(s.batch, one); len(s.batch) == maxBatch {
			if err := s.flush(ctx); err != nil {
				return err
			}
		}
	}
	for _, index := range indices {
		s.done[index] = true
	}
	return s.flush(ctx)
}

func (s *search) unseenAt(name string, doc document.Doc) unseen {
	one := unseen{doc.Ref, doc}
	one.doc.Index = name
	if s.Behind == nil {
		one.place.Index = name // nothing more is known of it
	}
	return one
}

// flush leaves the batch to the second scan.
func (s *search) flush(ctx context.Context) error {
	batch := s.batch
	s.batch = nil
	if s.Foreign != nil && len(batch) > 0 {
		var err error
		if batch, err = s.ours(ctx, batch); err != nil {
			return err
		}
	}
	for _, one := range batch {
		if len(s.unseen) >= maxUnseen {
			s.result.Unchecked++
			s.brake.unread++
			continue
		}
		s.unseen[one.place] = one.doc
	}
	return nil
}

// ours leaves out the documents of other applications: they would fill the second
// scan's memory.
func (s *search) ours(ctx context.Context, batch []unseen) ([]unseen, error) {
	docs, err := get(ctx, s.run, batch, func(one unseen) document.Ref { return one.doc.Ref })
	if err != nil {
		return nil, err
	}
	kept := batch[:0]
	for i, doc := range docs {
		switch {
		case !doc.Found:
			s.result.Settled++
		case s.Foreign(doc):
			s.result.Foreign++
		default:
			kept = append(kept, batch[i])
		}
	}
	return kept, nil
}

// scanFor scans the table again for documents that the first scan did not find. It
// finds an item that existed when its document was listed, unless the item was
// deleted since. Then its document is deleted too, or changed.
func (r *run) scanFor(ctx context.Context, unseen map[document.Ref]document.Doc) error {
	if len(unseen) == 0 {
		return nil
	}
	before := len(unseen)
	blind := r.result.Failed > 0
	for rec, err := range r.Scan(ctx) {
		if err != nil {
			return fmt.Errorf("audit: reading the table again: %w", err)
		}
		ops, err := r.Project(rec)
		if err != nil {
			blind = true // whatever document it has
			continue
		}
		for _, op := range ops {
			if op.Action != document.Put {
				continue
			}
			places, err := r.places(ctx, op.Ref())
			if err != nil {
				return err
			}
			for _, place := range places {
				delete(unseen, place)
			}
		}
	}
	r.result.Settled += int64(before - len(unseen))
	if blind {
		r.result.Unchecked += int64(len(unseen))
		return nil
	}
	if err := backoff.Sleep(ctx, r.Settle); err != nil {
		return err
	}
	listed := slices.Collect(maps.Values(unseen))
	for chunk := range slices.Chunk(listed, maxBatch) {
		docs, err := get(ctx, r, chunk, func(doc document.Doc) document.Ref { return doc.Ref })
		if err != nil {
			return err
		}
		for i, doc := range docs {
			if err := r.notFound(ctx, doc, chunk[i]); err != nil {
				return err
			}
		}
		r.Progress(r.result)
	}
	return nil
}

// notFound ends the turn of a document that neither scan gave.
func (r *run) notFound(ctx context.Context, doc, listed document.Doc) error {
	if !doc.Found || doc.Version != listed.Version {
		// It was deleted with its item. Or a change of its item has reached it
		// since, so the item exists, or did a moment ago.
		r.result.Settled++
		return nil
	}
	return r.repair(ctx, Drift{Kind: Ghost, Ref: listed.Ref, Have: doc.Version}, nil, doc)
}
