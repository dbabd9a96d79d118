package transitgateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/sluicehq/sluice/sinks/opensearch"
)

// CreateIndex makes the index of documents, if it is not there. replicas may be
// 0, on a cluster of one node.
//
// The version of a deleted document is remembered for as long as a stream keeps
// records, and some hours: a record that is handled again within that time
// brings nothing back.
func CreateIndex(ctx context.Context, c *opensearch.Client, name string, replicas int) error {
	keyword := map[string]any{"type": "keyword"}
	err := c.Call(ctx, http.MethodPut, "/"+name, map[string]any{
		"settings": map[string]any{"index": map[string]any{"number_of_replicas": replicas, "gc_deletes": "36h"}},
		"mappings": map[string]any{"properties": map[string]any{
			"owner_id": keyword, "tgw_id": keyword, "state": keyword, "name": keyword, "route_table_ids": keyword,
			"version":    map[string]any{"type": "long"},
			"created_at": map[string]any{"type": "date", "format": "epoch_millis"},
		}},
	}, nil)
	if refused, ok := errors.AsType[*opensearch.StatusError](err); ok && refused.Type == "resource_already_exists_exception" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating index %s: %w", name, err)
	}
	return nil
}
