package opensearch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
	"github.com/sluicehq/sluice/internal/parallel"
)

const (
	sweepPage    = 1000 // tombstones in one search
	sweepWriters = 64
)

// Sweep deletes the tombstones of items that were deleted before that time, and
// returns how many tombstones it found. The time must be 25 hours ago at least.
// Sweep keeps a document that replaces a tombstone meanwhile. write is Write of a
// [Sink].
func (m *Marks) Sweep(ctx context.Context, name string, before time.Time, write func(context.Context, document.Op) error) (n int, err error) {
	if least := time.Now().Add(-docrules.LeastKept); before.After(least) {
		return 0, fmt.Errorf("opensearch: %s: tombstones younger than %v cannot be swept: a redelivered record could restore the document", name, docrules.LeastKept)
	}
	for {
		if err := m.c.Refresh(ctx, name); err != nil {
			return n, err
		}
		ops, err := m.tombstones(ctx, name, before)
		if err != nil {
			return n, fmt.Errorf("opensearch: looking for tombstones in %s: %w", name, err)
		}
		errs := make([]error, len(ops))
		parallel.Do(len(ops), sweepWriters, func(i int) { errs[i] = write(ctx, ops[i]) })
		if err := errors.Join(errs...); err != nil {
			return n, fmt.Errorf("opensearch: sweeping tombstones of %s: %w", name, err)
		}
		n += len(ops)
		if len(ops) < sweepPage {
			return n, nil
		}
	}
}

// CountTombstones returns how many tombstones an index or alias has.
func (m *Marks) CountTombstones(ctx context.Context, name string) (int, error) {
	d, err := m.c.describe(ctx, name)
	if err != nil || d == nil {
		return 0, err
	}
	// The index itself: its alias hides them.
	n, err := m.c.count(ctx, d.index, map[string]any{"query": map[string]any{"exists": map[string]any{"field": m.field + ".deleted"}}})
	if err != nil {
		return 0, fmt.Errorf("opensearch: counting the tombstones of %s: %w", name, err)
	}
	return int(n), nil
}

// tombstones returns deletions of some tombstones.
func (m *Marks) tombstones(ctx context.Context, name string, before time.Time) ([]document.Op, error) {
	d, err := m.c.describe(ctx, name)
	if err != nil || d == nil {
		return nil, err
	}
	var out searchHits
	in := map[string]any{
		"size": sweepPage, "seq_no_primary_term": true, "_source": false, "track_total_hits": false, "sort": []string{"_doc"},
		"query": map[string]any{"range": map[string]any{m.field + ".deleted": map[string]any{"lt": before.UTC().Format(time.RFC3339), "format": "strict_date_time_no_millis"}}},
	}
	// The index itself: its alias hides them.
	path := "/" + url.PathEscape(d.index) + "/_search?allow_partial_search_results=false"
	if err := m.c.c.Call(ctx, http.MethodPost, path, in, &out); err != nil {
		return nil, err
	}
	var ops []document.Op
	for _, h := range out.Hits.Hits {
		ops = append(ops, document.Op{
			Action: document.Delete, Index: d.index, ID: h.ID, Routing: h.Routing, Fence: document.Unchanged,
			Revision: document.Revision{SeqNo: h.SeqNo, PrimaryTerm: h.PrimaryTerm},
		})
	}
	return ops, nil
}

// Tombstones returns a function that lists the tombstones of an index or alias with
// their versions, revisions and sources. list is ListMatching of a
// [Client].
func (m *Marks) Tombstones(list func(ctx context.Context, index string, query map[string]any) iter.Seq2[document.Doc, error]) func(context.Context, string) iter.Seq2[document.Doc, error] {
	return func(ctx context.Context, name string) iter.Seq2[document.Doc, error] {
		return func(yield func(document.Doc, error) bool) {
			d, err := m.c.describe(ctx, name)
			if err != nil {
				yield(document.Doc{}, err)
			}
			if err != nil || d == nil {
				return
			}
			// The index itself: its alias hides them.
			list(ctx, d.index, map[string]any{"exists": map[string]any{"field": m.field + ".deleted"}})(yield)
		}
	}
}
