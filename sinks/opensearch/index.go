package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/effect/document"
)

// caller makes requests; a *Client does.
type caller interface {
	Call(ctx context.Context, method, path string, in, out any) error
}

// Indices has the indices, templates and aliases of one cluster:
//
//	err := client.Indices().Apply(ctx, os.DirFS("search"), opensearch.IndexOptions{})
//
// It is safe for concurrent use.
type Indices struct{ c caller }

// Indices returns the indices, templates and aliases of the cluster.
func (c *Client) Indices() *Indices { return newIndices(c) }

func newIndices(c caller) *Indices { return &Indices{c: c} }

// Behind returns the indices behind each alias, sorted, and nothing for a name
// that is no alias.
func (c *Indices) Behind(ctx context.Context, aliases ...string) (map[string][]string, error) {
	names := make([]string, len(aliases))
	for i, a := range aliases {
		names[i] = url.PathEscape(a)
	}
	// GET _alias answers 404 as soon as one of them is missing.
	var rows []struct{ Alias, Index string }
	path := "/_cat/aliases/" + strings.Join(names, ",") + "?format=json&h=alias,index"
	if err := c.c.Call(ctx, http.MethodGet, path, nil, &rows); err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, row := range rows {
		found[row.Alias] = append(found[row.Alias], row.Index)
	}
	for _, indices := range found {
		slices.Sort(indices)
	}
	return found, nil
}

// acknowledgement is the answer to a change. Not acknowledged, it is known to the cluster
// manager, and not to every node yet.
type acknowledgement struct{ Acknowledged bool }

func (c *Indices) change(ctx context.Context, method, path string, in any) error {
	var out acknowledgement
	if err := c.c.Call(ctx, method, path, in, &out); err != nil {
		return err
	}
	if !out.Acknowledged {
		return fmt.Errorf("%s %s is done, but not all nodes have said in time that they know: try again", method, path)
	}
	return nil
}

// Create makes an index of a body {"settings", "mappings", "aliases"}; false says
// that there is one of that name.
func (c *Indices) Create(ctx context.Context, index string, body []byte) (created bool, err error) {
	err = c.change(ctx, http.MethodPut, "/"+url.PathEscape(index), body)
	if status, ok := errors.AsType[*StatusError](err); ok && status.Type == "resource_already_exists_exception" {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("creating index %s: %w", index, err)
	}
	return true, nil
}

// Point moves aliases, all in one step or none: those of from, which lead to the
// indices it says, lead nowhere then, and those of to where it says. One that is
// in both keeps its filter, its routing and whether it is for writing. It fails
// when one of from does not lead there.
func (c *Indices) Point(ctx context.Context, from, to map[string]string) error {
	var in struct {
		Actions []map[string]any `json:"actions"`
	}
	for _, alias := range slices.Sorted(maps.Keys(from)) {
		in.Actions = append(in.Actions, map[string]any{"remove": map[string]any{"index": from[alias], "alias": alias, "must_exist": true}})
	}
	for _, alias := range slices.Sorted(maps.Keys(to)) {
		add := map[string]any{}
		if index, ok := from[alias]; ok {
			kept, err := c.alias(ctx, index, alias)
			if err != nil {
				return err
			}
			for name, v := range kept {
				add[name] = v
			}
		}
		add["index"], add["alias"] = to[alias], alias
		in.Actions = append(in.Actions, map[string]any{"add": add})
	}
	if err := c.change(ctx, http.MethodPost, "/_aliases", in); err != nil {
		return fmt.Errorf("moving aliases from %v to %v: %w", from, to, err)
	}
	return nil
}

// alias returns what an alias says of an index besides leading to it; nothing when
// it does not lead there.
func (c *Indices) alias(ctx context.Context, index, alias string) (map[string]json.RawMessage, error) {
	var out map[string]struct {
		Aliases map[string]map[string]json.RawMessage
	}
	err := c.c.Call(ctx, http.MethodGet, "/"+url.PathEscape(index)+"/_alias/"+url.PathEscape(alias), nil, &out)
	if err != nil && !isMissing(err) {
		return nil, fmt.Errorf("reading the alias %s of index %s: %w", alias, index, err)
	}
	return out[index].Aliases[alias], nil
}

// Meta returns _meta of an index' mapping; found is false when there is no such
// index.
func (c *Indices) Meta(ctx context.Context, index string) (meta map[string]json.RawMessage, found bool, err error) {
	var out map[string]struct {
		Mappings struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
	}
	err = c.c.Call(ctx, http.MethodGet, "/"+url.PathEscape(index)+"/_mapping", nil, &out)
	if isMissing(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the mapping of index %s: %w", index, err)
	}
	m, ok := out[index]
	if !ok {
		return nil, false, fmt.Errorf("%s is no index: its mapping is that of %s", index, strings.Join(slices.Sorted(maps.Keys(out)), ", "))
	}
	return m.Mappings.Meta, true, nil
}

// SetMeta replaces _meta of an index' mapping.
func (c *Indices) SetMeta(ctx context.Context, index string, meta map[string]json.RawMessage) error {
	in := map[string]any{"_meta": meta}
	if err := c.change(ctx, http.MethodPut, "/"+url.PathEscape(index)+"/_mapping", in); err != nil {
		return fmt.Errorf("setting _meta of index %s: %w", index, err)
	}
	return nil
}

// Refresh makes an index' documents searchable. OpenSearch Serverless knows no such
// request: it answers 404 without a type, and refreshes by itself.
func (c *Indices) Refresh(ctx context.Context, index string) error {
	var out struct {
		Shards struct{ Failed int } `json:"_shards"`
	}
	err := c.c.Call(ctx, http.MethodPost, "/"+url.PathEscape(index)+"/_refresh", nil, &out)
	if status, ok := errors.AsType[*StatusError](err); ok && status.Status == http.StatusNotFound && status.Type == "" {
		return nil
	}
	if err == nil && out.Shards.Failed > 0 {
		err = fmt.Errorf("%d shards failed", out.Shards.Failed)
	}
	if err != nil {
		return fmt.Errorf("refreshing index %s: %w", index, err)
	}
	return nil
}

// Count makes an index' documents searchable, and counts them.
func (c *Indices) Count(ctx context.Context, index, markField string) (int64, error) {
	if markField == "" {
		return c.count(ctx, index, nil)
	}
	return c.count(ctx, index, map[string]any{"query": noTombstones(markField)})
}

func (c *Indices) count(ctx context.Context, index string, in any) (int64, error) {
	if err := c.Refresh(ctx, index); err != nil {
		return 0, err
	}
	var out struct {
		Count  int64
		Shards struct{ Failed int } `json:"_shards"`
	}
	err := c.c.Call(ctx, http.MethodPost, "/"+url.PathEscape(index)+"/_count", in, &out)
	if err == nil && out.Shards.Failed > 0 {
		err = fmt.Errorf("%d shards failed", out.Shards.Failed)
	}
	if err != nil {
		return 0, fmt.Errorf("counting index %s: %w", index, err)
	}
	return out.Count, nil
}

// maxSample is what a search returns at most (index.max_result_window).
const maxSample = 10_000

// Sample returns up to n documents, at most 10,000, without sources: those
// written last, or any.
func (c *Indices) Sample(ctx context.Context, index string, n int, last bool) ([]document.Doc, error) {
	in := map[string]any{"size": min(n, maxSample), "version": true, "_source": false, "track_total_hits": false}
	if last {
		in["sort"] = []any{map[string]string{"_seq_no": "desc"}}
	} else {
		in["query"] = map[string]any{"function_score": map[string]any{"random_score": struct{}{}}}
	}
	var out searchHits
	path := "/" + url.PathEscape(index) + "/_search?allow_partial_search_results=false"
	if err := c.c.Call(ctx, http.MethodPost, path, in, &out); err != nil {
		return nil, fmt.Errorf("sampling index %s: %w", index, err)
	}
	var docs []document.Doc
	for _, h := range out.Hits.Hits {
		if h.Version == nil {
			return nil, fmt.Errorf("sampling index %s: a document came without its version", index)
		}
		docs = append(docs, document.Doc{Ref: document.Ref{Index: index, ID: h.ID, Routing: h.Routing}, Found: true, Version: *h.Version})
	}
	return docs, nil
}

// Delete deletes an index; that there is none is no error.
func (c *Indices) Delete(ctx context.Context, index string) error {
	err := c.change(ctx, http.MethodDelete, "/"+url.PathEscape(index), nil)
	if err == nil || isMissing(err) {
		return nil
	}
	return fmt.Errorf("deleting index %s: %w", index, err)
}

func isMissing(err error) bool {
	status, ok := errors.AsType[*StatusError](err)
	return ok && status.Status == http.StatusNotFound
}
