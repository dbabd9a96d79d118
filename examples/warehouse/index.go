package warehouse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// DefaultIndexPrefix begins the names of the indexes where no other is given.
const DefaultIndexPrefix = "wrhs-"

// projections are the documents of packages and builds. Those tables have no
// version numbers, so the position in the stream decides which change is later.
func projections(d Deps) (packages, builds *projection.Projection, err error) {
	o := projection.Options{Version: projection.BySequence(), Current: func(ctx context.Context, rec *sluice.Record) (sluice.Item, error) {
		return d.Store.Get(ctx, rec.Table, rec.Keys)
	}}
	o.Index, o.ID = d.IndexPrefix+"package", "{name}"
	if packages, err = projection.New(d.Write, o); err != nil {
		return nil, nil, err
	}
	o.Index, o.ID = d.IndexPrefix+"build", "{build_id}"
	builds, err = projection.New(d.Write, o)
	return packages, builds, err
}

// kinds are what has an index: those of the prefix and each of these names.
var kinds = []string{"package", "build"}

// closed are the fields of objects that are stored and not searched. What is in a
// package.json is not ours to say, so that two packages cannot disagree about a
// field.
var closed = []string{
	"dependencies", "dev_dependencies", "peer_dependencies", "optional_dependencies",
	"config", "repository", "dist_tags", "envs", "metadata", "extended",
	"rollback_build_ids", // of builds
}

// CreateIndexes makes the two indexes behind their aliases, if they are not there.
// replicas may be 0, on a cluster of one node.
func CreateIndexes(ctx context.Context, c *opensearch.Client, prefix string, replicas int) error {
	properties := make(map[string]any)
	for _, field := range closed {
		properties[field] = map[string]any{"type": "object", "enabled": false}
	}
	cluster := c.Indices()
	marks := cluster.Marks(projection.DefaultMark, false)
	for _, kind := range kinds {
		body, err := json.Marshal(map[string]any{
			"settings": map[string]any{"index": map[string]any{"number_of_replicas": replicas}},
			"aliases":  map[string]any{prefix + kind: map[string]any{}},
			"mappings": map[string]any{"properties": properties},
		})
		if err != nil {
			return err
		}
		if _, err := cluster.Create(ctx, prefix+kind+"-000001", body); err != nil {
			return err
		}
		if err := marks.Check(ctx, prefix+kind); err != nil { // it gets the field of its marks
			return err
		}
	}
	return nil
}

// CheckIndexes reports an index that does not exist, or that maps its fields or
// marks in another way than CreateIndexes does.
func CheckIndexes(ctx context.Context, c *opensearch.Client, marks *opensearch.Marks, prefix string) error {
	for _, kind := range kinds {
		alias := prefix + kind
		var found map[string]struct {
			Mappings struct {
				Properties map[string]struct{ Enabled *bool }
			}
		}
		err := c.Call(ctx, http.MethodGet, "/"+url.PathEscape(alias), nil, &found)
		if status, ok := errors.AsType[*opensearch.StatusError](err); ok && status.Status == http.StatusNotFound {
			return fmt.Errorf("index %s does not exist at %s: run `warehouse create`", alias, status.Host)
		}
		if err != nil {
			return err
		}
		for index, is := range found {
			for _, field := range closed {
				if enabled := is.Mappings.Properties[field].Enabled; enabled == nil || *enabled {
					return fmt.Errorf("index %s maps the field %s in another way: delete the index, run `warehouse create`, and fill it by --backfill", index, field)
				}
			}
		}
		if err := marks.Check(ctx, alias); err != nil {
			return err
		}
	}
	return nil
}
