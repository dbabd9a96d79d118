package warehouse

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/sluicehq/sluice/document"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// DefaultIndexPrefix begins the names of the indexes where no other is given.
const DefaultIndexPrefix = "wrhs-"

// projections are the documents of packages and builds. Nobody counts versions
// in those tables, so that the position in the stream says what is later.
func projections(write func(context.Context, document.Op) error, prefix string) (packages, builds *projection.Projection, err error) {
	packages, err = projection.New(write, projection.Options{Index: prefix + "package", ID: "{name}", Version: projection.BySequence()})
	if err != nil {
		return nil, nil, err
	}
	builds, err = projection.New(write, projection.Options{Index: prefix + "build", ID: "{build_id}", Version: projection.BySequence()})
	return packages, builds, err
}

// CreateIndexes makes the two indexes, if they are not there. replicas may be 0,
// on a cluster of one node.
//
// The version of a deleted document is remembered for as long as a stream keeps
// records, and some hours: a record that is handled again within that time
// brings nothing back.
func CreateIndexes(ctx context.Context, c *opensearch.Client, prefix string, replicas int) error {
	for _, kind := range []string{"package", "build"} {
		err := c.Call(ctx, http.MethodPut, "/"+prefix+kind, map[string]any{
			"settings": map[string]any{"index": map[string]any{"number_of_replicas": replicas, "gc_deletes": "36h"}},
			// What is in a package.json is not ours to say: it is stored, and not
			// searched, so that two packages cannot disagree about a field.
			"mappings": map[string]any{"properties": map[string]any{
				"dependencies": closed, "devDependencies": closed, "peerDependencies": closed, "optionalDependencies": closed,
				"config": closed, "repository": closed, "license": closed,
			}},
		}, nil)
		if refused, ok := errors.AsType[*opensearch.StatusError](err); ok && refused.Type == "resource_already_exists_exception" {
			continue
		}
		if err != nil {
			return fmt.Errorf("creating index %s: %w", prefix+kind, err)
		}
	}
	return nil
}

// closed is an object that is kept as it is.
var closed = map[string]any{"type": "object", "enabled": false}
