package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/document"
)

// maxUnseen bounds the documents that a second scan looks for.
const maxUnseen = 100_000

// searchGhosts looks at every document of the indices that no item of the scan
// gave.
func (r *run) searchGhosts(ctx context.Context) error {
	unseen := map[document.Ref]int64{} // their versions
	for _, index := range slices.Sorted(maps.Keys(r.indices)) {
		for doc, err := range r.List(ctx, index) {
			if err != nil {
				return fmt.Errorf("audit: listing index %s: %w", index, err)
			}
			if r.result.Listed++; r.result.Listed%maxBatch == 0 {
				r.Progress(r.result)
			}
			doc.Index = index // and not that behind the alias
			if r.seen.has(doc.Ref) {
				continue
			}
			if err := r.unseen(ctx, doc, unseen); err != nil {
				return err
			}
		}
	}
	r.seen = nil
	if err := r.settleAll(ctx); err != nil {
		return err
	}
	return r.scanFor(ctx, unseen)
}

// unseen takes in a document that the scan did not give: it is looked at by its
// key, or else waits for the second scan.
func (r *run) unseen(ctx context.Context, doc document.Doc, unseen map[document.Ref]int64) error {
	if r.KeyOf != nil {
		if key, ok := r.KeyOf(doc.Ref); ok {
			c := candidate{ref: doc.Ref, was: look{item: unread}, rec: sluice.Record{
				EventName: sluice.Snapshot, Table: r.Table, Keys: key, Origin: sluice.Backfilled,
			}}
			if err := r.wait(ctx, c); err != nil {
				return err
			}
			return r.settle(ctx, false)
		}
	}
	if len(unseen) >= maxUnseen {
		r.result.Unchecked++
		return nil
	}
	unseen[doc.Ref] = doc.Version
	return nil
}

// scanFor scans the table again for documents that the first scan did not give.
// An item that has one and was there when it was listed is found, unless it was
// deleted since; then its document goes, too, or is changed.
func (r *run) scanFor(ctx context.Context, unseen map[document.Ref]int64) error {
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
			if _, ok := unseen[op.Ref()]; ok && op.Action == document.Put {
				delete(unseen, op.Ref())
			}
		}
	}
	r.result.Settled += int64(before - len(unseen))
	if blind {
		r.result.Unchecked += int64(len(unseen))
		return nil
	}
	if err := sleep(ctx, r.Settle); err != nil {
		return err
	}
	refs := make([]document.Ref, 0, len(unseen))
	for ref := range unseen {
		refs = append(refs, ref)
	}
	for chunk := range slices.Chunk(refs, maxBatch) {
		docs, err := r.get(ctx, chunk)
		if err != nil {
			return err
		}
		for i, doc := range docs {
			if err := r.notFound(ctx, chunk[i], doc, unseen[chunk[i]]); err != nil {
				return err
			}
		}
		r.Progress(r.result)
	}
	return nil
}

// notFound ends the turn of a document that neither scan gave.
func (r *run) notFound(ctx context.Context, ref document.Ref, doc document.Doc, listed int64) error {
	if !doc.Found || doc.Version != listed {
		// It went the way of its item; or a change of its item has reached it
		// since, so that the item is there, or was until a moment ago.
		r.result.Settled++
		return nil
	}
	return r.repair(ctx, Drift{Kind: Ghost, Ref: ref, Have: doc.Version}, nil, doc)
}
