package opensearch

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// IndexOptions are for what Apply and IndexBody make.
type IndexOptions struct {
	// GCDeletes is index.gc_deletes, unless a file sets it (default 1 h): longer
	// than any record is under way, with retries. Below 0 it is left to the
	// cluster.
	GCDeletes time.Duration
	// TotalFields is index.mapping.total_fields.limit, unless a file sets it
	// (default 1000). Below 0 it is left to the cluster.
	TotalFields int
	// NoReplicas makes indices without replicas, whatever a file says: for a
	// cluster of one node, as tests have.
	NoReplicas bool
	// Called is what messages call a file, by its path in the folder, such as
	// indices/products.json (default: that path).
	Called map[string]string
	// Marks are of those aliases whose documents are versioned by sequence: their
	// mappings get the field, unless a file has it.
	Marks map[string]*Marks
	// Different is called for each index and template that differs from its file:
	// the file, the index or template, and the first path that differs. Without
	// it Apply returns the first as its error.
	Different func(error)
}

func (o IndexOptions) withDefaults() IndexOptions {
	o.GCDeletes = cmp.Or(o.GCDeletes, time.Hour)
	o.TotalFields = cmp.Or(o.TotalFields, 1000)
	return o
}

func (o IndexOptions) validate() error {
	var errs []error
	if o.GCDeletes > 0 && o.GCDeletes%time.Second != 0 {
		errs = append(errs, fmt.Errorf("opensearch: IndexOptions.GCDeletes is %v, want whole seconds", o.GCDeletes))
	}
	return errors.Join(errs...)
}
