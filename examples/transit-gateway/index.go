package transitgateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/sluicehq/sluice/sinks/opensearch"
)

// fieldTypes is how the index maps a document's fields.
var fieldTypes = map[string]string{
	"owner_id": "keyword", "tgw_id": "keyword", "state": "keyword", "name": "keyword", "route_table_ids": "keyword",
	"version": "long", "created_at": "date",
}

// CreateIndex makes the index of documents, if it is not there. replicas may be
// 0, on a cluster of one node.
//
// The version of a deleted document is remembered for as long as a stream keeps
// records, and some hours: a record that is handled again within that time
// brings nothing back.
func CreateIndex(ctx context.Context, c *opensearch.Client, name string, replicas int) error {
	properties := make(map[string]map[string]string)
	for field, kind := range fieldTypes {
		properties[field] = map[string]string{"type": kind}
	}
	properties["created_at"]["format"] = "epoch_millis"
	err := c.Call(ctx, http.MethodPut, "/"+name, map[string]any{
		"settings": map[string]any{"index": map[string]any{"number_of_replicas": replicas, "gc_deletes": "36h"}},
		"mappings": map[string]any{"properties": properties},
	}, nil)
	if refused, ok := errors.AsType[*opensearch.StatusError](err); ok && refused.Type == "resource_already_exists_exception" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating index %s: %w", name, err)
	}
	return nil
}

// CheckIndex reports an index that does not exist, or that maps its fields in
// another way than CreateIndex does. name may be an alias of one index.
func CheckIndex(ctx context.Context, c *opensearch.Client, name string) error {
	var found map[string]struct {
		Mappings struct {
			Properties map[string]struct{ Type string }
		}
	}
	err := c.Call(ctx, http.MethodGet, "/"+name, nil, &found)
	if refused, ok := errors.AsType[*opensearch.StatusError](err); ok && refused.Status == http.StatusNotFound {
		return fmt.Errorf("index %s (TGW_INDEX) does not exist at %s: run `transit-gateway create`", name, refused.Host)
	}
	if err != nil {
		return err
	}
	for index, is := range found {
		for _, field := range slices.Sorted(maps.Keys(fieldTypes)) {
			if got, want := is.Mappings.Properties[field].Type, fieldTypes[field]; got != want {
				return fmt.Errorf("index %s maps the field %s as %q, want %q: delete the index, run `transit-gateway create`, and fill it by --backfill", index, field, got, want)
			}
		}
	}
	return c.Indices().CheckUnmarked(ctx, name)
}
