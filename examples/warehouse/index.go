package warehouse

import (
	"context"
	"encoding/json"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/sinks/opensearch/indices"
)

// DefaultIndexPrefix begins the names of the indexes where no other is given.
const DefaultIndexPrefix = "wrhs-"

// projections are the documents of packages and builds. Nobody counts versions
// in those tables, so that the position in the stream says what is later.
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

// CreateIndexes makes the two indexes behind their aliases, if they are not there.
// replicas may be 0, on a cluster of one node.
func CreateIndexes(ctx context.Context, c *opensearch.Client, prefix string, replicas int) error {
	cluster := indices.New(c)
	marks := cluster.Marks(projection.DefaultMark, false)
	for _, kind := range []string{"package", "build"} {
		body, err := json.Marshal(map[string]any{
			"settings": map[string]any{"index": map[string]any{"number_of_replicas": replicas}},
			"aliases":  map[string]any{prefix + kind: map[string]any{}},
			// What is in a package.json is not ours to say: it is stored, and not
			// searched, so that two packages cannot disagree about a field.
			"mappings": map[string]any{"properties": map[string]any{
				"dependencies": closed, "dev_dependencies": closed, "peer_dependencies": closed, "optional_dependencies": closed,
				"config": closed, "repository": closed, "dist_tags": closed, "envs": closed, "metadata": closed, "extended": closed,
				"rollback_build_ids": closed, // of builds
			}},
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

// closed is an object that is kept as it is.
var closed = map[string]any{"type": "object", "enabled": false}
