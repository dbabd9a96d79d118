package meadowlark

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/sluicehq/sluice/sinks/opensearch"
)

// maxFields limits the fields that documents may add to the mapping of an index:
// arbitrary keys would make it grow until the cluster is slow for all. A document
// that needs more fields is refused as a whole and parked; its old copy stays.
const maxFields = 1000

// Indices are the indices of all types whose names begin with a prefix. They are
// made as documents come; a template says how.
type Indices struct {
	Call   func(ctx context.Context, method, path string, in, out any) error // of an opensearch.Client
	Prefix string
}

// Install writes the template. Indices that are there stay as they are. A
// negative number of replicas leaves it to the cluster.
func (x Indices) Install(ctx context.Context, replicas int) error {
	index := map[string]any{
		// A record may come again as long as its stream has it: for so long the
		// version of a deleted document is remembered.
		"gc_deletes": "25h",
		"mapping":    map[string]any{"total_fields": map[string]any{"limit": maxFields}},
	}
	if replicas >= 0 {
		index["number_of_replicas"] = replicas
	}
	body := map[string]any{
		"index_patterns": []string{x.pattern()},
		"priority":       200,
		"template":       map[string]any{"settings": map[string]any{"index": index}, "mappings": mappings()},
	}
	if err := x.Call(ctx, http.MethodPut, x.path(), body, nil); err != nil {
		return fmt.Errorf("installing the template of indices %s: %w", x.pattern(), err)
	}
	return nil
}

// Check verifies that the template exists. Without it the first documents would
// decide the mapping of an index.
func (x Indices) Check(ctx context.Context) error {
	err := x.Call(ctx, http.MethodGet, x.path(), nil, nil)
	if status, ok := errors.AsType[*opensearch.StatusError](err); ok && status.Status == http.StatusNotFound {
		return fmt.Errorf("there is no template of indices %s at %s: `meadowlark create` installs it", x.pattern(), status.Host)
	}
	return err
}

func (x Indices) pattern() string { return x.Prefix + "type$*" }
func (x Indices) path() string    { return "/_index_template/" + url.PathEscape(x.Prefix+"meadowlark") }

// mappings let no document decide by chance what the next one may hold: a text
// that looks like a date is a text, and numbers, which have up to 38 digits, are
// searched as doubles; the document itself keeps all of them.
func mappings() map[string]any {
	keyword := map[string]any{"type": "keyword"}
	number := func(kind string) map[string]any {
		return map[string]any{"match_mapping_type": kind, "mapping": map[string]any{"type": "double"}}
	}
	return map[string]any{
		"date_detection":    false,
		"numeric_detection": false,
		"dynamic_templates": []any{
			map[string]any{"integers": number("long")},
			map[string]any{"fractions": number("double")},
		},
		"properties": map[string]any{
			"id":                 keyword,
			"info":               map[string]any{"type": "keyword", "index": false, "doc_values": false},
			"createdBy":          keyword,
			"extractedEdOrgId":   keyword,
			"extractedStudentId": keyword,
			"securityEdOrgId":    keyword,
			"securityStudentId":  keyword,
		},
	}
}
