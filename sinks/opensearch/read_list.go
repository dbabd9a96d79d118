package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/sluicehq/sluice/effect/document"
)

const (
	firstPage = 100             // documents
	mostPage  = 5_000           // documents
	pageBytes = 4 << 20         // target size of a page, estimated from the one before
	keepAlive = "5m"            // of the point in time, renewed by each page
	closing   = 5 * time.Second // to close the point in time
)

// List yields every document of an index or alias, with its version, routing and
// source, in no order: the documents that were searchable at its start. A refresh
// makes all documents searchable; by default one happens every second. Index of
// each is the index behind the alias. List holds one page of about 4 MB at a time.
// A failure is the last element.
//
// List keeps a point in time open in the cluster, which uses disk until the end.
// The next page must be requested within 5 minutes. A cluster without points in
// time (OpenSearch before 2.4) is listed by _id, page by page. Then documents
// written or deleted meanwhile may or may not appear.
//
// One index is read in the order of its storage. An alias of several indices is
// read by _id. So is a collection of OpenSearch Serverless, which does not report
// its shards. Reading by _id makes the cluster hold all ids in memory, and the
// setting indices.id_field_data.enabled must allow it.
func (c *Client) List(ctx context.Context, index string) iter.Seq2[document.Doc, error] {
	return c.list(ctx, index, nil, true)
}

// ListMatching is List for the documents that match a query, with their revisions.
func (c *Client) ListMatching(ctx context.Context, index string, query map[string]any) iter.Seq2[document.Doc, error] {
	return c.list(ctx, index, query, true)
}

// ListIDs is List without sources.
func (c *Client) ListIDs(ctx context.Context, index string) iter.Seq2[document.Doc, error] {
	return c.list(ctx, index, nil, false)
}

func (c *Client) list(ctx context.Context, index string, query map[string]any, source bool) iter.Seq2[document.Doc, error] {
	return func(yield func(document.Doc, error) bool) {
		l := &lister{c: c, index: index, query: query, size: firstPage, source: source}
		err := l.run(ctx, func(d document.Doc) bool { return yield(d, nil) })
		if err != nil {
			yield(document.Doc{}, fmt.Errorf("listing index %s: %w", index, err))
		}
	}
}

// lister is one walk through an index.
type lister struct {
	c      *Client
	index  string
	query  map[string]any // nil: all documents
	source bool
	pit    string // point in time; empty without support
	size   int    // documents of the next page
}

func (l *lister) run(ctx context.Context, yield func(document.Doc) bool) error {
	shards, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer l.close(ctx)
	if shards == 0 {
		_, err := l.walk(ctx, "_id", nil, yield)
		return err
	}
	for i := range shards {
		var slice map[string]int
		if shards > 1 {
			slice = map[string]int{"id": i, "max": shards} // slice i is shard i
		}
		if more, err := l.walk(ctx, "_doc", slice, yield); err != nil || !more {
			return err
		}
	}
	return nil
}

// open opens a point in time, if supported. It returns the number of shards in
// which the place of a document is unique, or 0.
func (l *lister) open(ctx context.Context) (shards int, err error) {
	var out struct {
		ID     string                      `json:"pit_id"`
		Shards struct{ Total, Failed int } `json:"_shards"`
	}
	path := "/" + url.PathEscape(l.index) + "/_search/point_in_time?allow_partial_pit_creation=false&keep_alive=" + keepAlive
	err = l.c.read(ctx, "POST", path, nil, &out)
	if status, ok := errors.AsType[*StatusError](err); ok && status.Type == "" && (status.Status == http.StatusBadRequest || status.Status == http.StatusNotFound || status.Status == http.StatusMethodNotAllowed) {
		return 0, nil // it does not know the request
	}
	if err != nil {
		return 0, err
	}
	l.pit = out.ID
	if out.Shards.Failed > 0 {
		l.close(ctx)
		return 0, fmt.Errorf("%d of %d shards cannot be read", out.Shards.Failed, out.Shards.Total)
	}
	if out.Shards.Total < 2 {
		return out.Shards.Total, nil
	}
	one, err := l.oneIndex(ctx)
	if err != nil {
		l.close(ctx)
		return 0, err
	}
	if !one {
		return 0, nil
	}
	return out.Shards.Total, nil
}

// oneIndex reports whether the shards are those of one index.
func (l *lister) oneIndex(ctx context.Context) (bool, error) {
	var out map[string]json.RawMessage
	path := "/" + url.PathEscape(l.index) + "/_alias"
	err := l.c.read(ctx, "GET", path, nil, &out)
	if _, ok := errors.AsType[*StatusError](err); ok {
		return false, nil // unknown or not allowed: read by _id
	}
	return len(out) == 1, err
}

// close closes the point in time, even if the caller gave up. The cluster itself
// would do it minutes later.
func (l *lister) close(ctx context.Context) {
	if l.pit == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	//nolint:errcheck // it ends by itself
	l.c.Call(ctx, "DELETE", "/_search/point_in_time", map[string]any{"pit_id": []string{l.pit}}, nil)
	l.pit = ""
}

// searchHits is the answer of a search.
type searchHits struct{ Hits struct{ Hits []searchHit } }

// searchHit is a document with the fields that the search asked for.
type searchHit struct {
	Index       string          `json:"_index"`
	ID          string          `json:"_id"`
	Routing     string          `json:"_routing"`
	Version     *int64          `json:"_version"`
	SeqNo       int64           `json:"_seq_no"`
	PrimaryTerm int64           `json:"_primary_term"`
	Source      json.RawMessage `json:"_source"`
	Sort        json.RawMessage `json:"sort"`
}

// walk yields all pages of one slice; more is false if yield stops.
func (l *lister) walk(ctx context.Context, order string, slice map[string]int, yield func(document.Doc) bool) (more bool, err error) {
	var after json.RawMessage
	for {
		hits, err := l.page(ctx, order, slice, after)
		if err != nil || len(hits) == 0 {
			return true, err
		}
		bytes := 0
		for _, h := range hits {
			if h.Version == nil || h.Sort == nil || l.source && h.Source == nil {
				return false, errors.New("a document came without its version, place or source: the index must store _source")
			}
			bytes += len(h.Source) + len(h.ID) + 100
			ref := document.Ref{Index: h.Index, ID: h.ID, Routing: h.Routing}
			doc := document.Doc{Ref: ref, Found: true, Version: *h.Version, Source: h.Source}
			doc.Revision = document.Revision{SeqNo: h.SeqNo, PrimaryTerm: h.PrimaryTerm}
			if !yield(doc) {
				return false, nil
			}
		}
		after = hits[len(hits)-1].Sort
		l.size = min(max(len(hits)*pageBytes/bytes, 1), mostPage, 4*l.size)
	}
}

func (l *lister) page(ctx context.Context, order string, slice map[string]int, after json.RawMessage) ([]searchHit, error) {
	in := map[string]any{
		"size": l.size, "sort": []any{map[string]string{order: "asc"}},
		"version": true, "track_total_hits": false, "_source": l.source,
	}
	if l.query != nil {
		in["query"], in["seq_no_primary_term"] = l.query, true
	}
	path := "/_search"
	if l.pit != "" {
		in["pit"] = map[string]string{"id": l.pit, "keep_alive": keepAlive}
	} else {
		path = "/" + url.PathEscape(l.index) + path
	}
	if slice != nil {
		in["slice"] = slice
	}
	if after != nil {
		in["search_after"] = after
	}
	var out struct {
		ID       string                      `json:"pit_id"`
		TimedOut bool                        `json:"timed_out"`
		Shards   struct{ Total, Failed int } `json:"_shards"`
		Hits     struct{ Hits []searchHit }
	}
	if err := l.c.read(ctx, "POST", path+"?allow_partial_search_results=false", in, &out); err != nil {
		return nil, err
	}
	if out.TimedOut || out.Shards.Failed > 0 {
		return nil, fmt.Errorf("a page came from only %d of %d shards", out.Shards.Total-out.Shards.Failed, out.Shards.Total)
	}
	if out.ID != "" && l.pit != "" {
		l.pit = out.ID
	}
	return out.Hits.Hits, nil
}
