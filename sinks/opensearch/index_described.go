package opensearch

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// sourceMapping is _source of a mapping: which fields OpenSearch stores.
type sourceMapping struct {
	Enabled            *bool
	Includes, Excludes []string
}

// keeps reports whether OpenSearch stores the field. When a pattern might exclude
// it, keeps answers false.
func (s sourceMapping) keeps(field string) bool {
	return (s.Enabled == nil || *s.Enabled) && len(s.Includes) == 0 && !slices.ContainsFunc(s.Excludes, func(pattern string) bool {
		return strings.HasPrefix(pattern, field) || strings.HasPrefix(pattern, "*")
	})
}

// described is the one index behind a name.
type described struct {
	index    string
	meta     map[string]json.RawMessage
	versions versions
	aliases  map[string]struct{ Filter any }
	source   sourceMapping
	field    map[string]any // the mapping of each field
}

// alias is the name if it is that of an alias, else empty.
func (d *described) alias(name string) string {
	if name == d.index {
		return ""
	}
	return name
}

// hides reports whether the alias has the filter, alone or within a bool. For an
// index that is written to directly (alias ""), any of its aliases will do.
func (d *described) hides(alias string, filter map[string]any) bool {
	for name, is := range d.aliases {
		if (alias == "" || name == alias) && contains(is.Filter, filter) {
			return true
		}
	}
	return false
}

func contains(have any, filter map[string]any) bool {
	if reflect.DeepEqual(have, filter) {
		return true
	}
	all, _ := have.(map[string]any)
	is, _ := all["bool"].(map[string]any)
	for _, part := range []string{"must", "filter"} {
		switch parts := is[part].(type) {
		case []any:
			if slices.ContainsFunc(parts, func(p any) bool { return contains(p, filter) }) {
				return true
			}
		case map[string]any:
			if contains(parts, filter) {
				return true
			}
		}
	}
	want := filter["bool"].(map[string]any)["must_not"]
	not, _ := is["must_not"].([]any)
	return reflect.DeepEqual(is["must_not"], want) || slices.ContainsFunc(not, func(p any) bool { return reflect.DeepEqual(p, want) })
}

// describe returns the index behind a name, which may be an alias; nil if it does
// not exist. An alias of several indices is a SchemeError.
func (c *Indices) describe(ctx context.Context, name string) (*described, error) {
	var out map[string]struct {
		Aliases  map[string]struct{ Filter any }
		Mappings struct {
			Meta       map[string]json.RawMessage `json:"_meta"`
			Source     sourceMapping              `json:"_source"`
			Properties map[string]any
		}
	}
	err := c.c.Call(ctx, http.MethodGet, "/"+url.PathEscape(name), nil, &out)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opensearch: reading %s: %w", name, err)
	}
	if len(out) != 1 {
		return nil, unfit(name, fmt.Sprintf("it is an alias of %d indices (%s): a change could create a second document, and a deletion could miss one", len(out), strings.Join(slices.Sorted(maps.Keys(out)), ", ")),
			"write to an alias of one index, and search all of them by another alias")
	}
	for index, is := range out {
		d := &described{index: index, meta: is.Mappings.Meta, aliases: is.Aliases, source: is.Mappings.Source, field: is.Mappings.Properties}
		if raw, ok := d.meta[metaVersions]; ok {
			if err := json.Unmarshal(raw, &d.versions); err != nil {
				return nil, fmt.Errorf("opensearch: _meta.%s of index %s: %w", metaVersions, index, err)
			}
		}
		return d, nil
	}
	return nil, nil
}

// contained reports whether all members of want are in have.
func contained(have any, want map[string]any) bool {
	is, _ := have.(map[string]any)
	for name, w := range want {
		if object, ok := w.(map[string]any); ok {
			if !contained(is[name], object) {
				return false
			}
		} else if is[name] != w {
			return false
		}
	}
	return true
}

// noTombstones is a query of all others.
func noTombstones(field string) map[string]any {
	return map[string]any{"bool": map[string]any{"must_not": map[string]any{"exists": map[string]any{"field": field + ".deleted"}}}}
}
