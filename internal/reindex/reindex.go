package reindex

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
)

// Cluster makes the requests to OpenSearch; sinks/opensearch.Indices does. When a
// method returns without an error, every node knows the change.
type Cluster interface {
	// Behind returns the indices behind each alias, sorted, and nothing for a name
	// that is no alias.
	Behind(ctx context.Context, aliases ...string) (map[string][]string, error)
	// Create makes an index of a body {"settings", "mappings", "aliases"}; false
	// says that there is one of that name.
	Create(ctx context.Context, index string, body []byte) (created bool, err error)
	// Point moves aliases, all in one step or none: those of from, which lead to
	// the indices it says, lead nowhere then, and those of to where it says. It
	// fails when one of from does not lead there.
	Point(ctx context.Context, from, to map[string]string) error
	// Meta returns _meta of an index' mapping; found is false when there is no such
	// index.
	Meta(ctx context.Context, index string) (meta map[string]json.RawMessage, found bool, err error)
	// SetMeta replaces it.
	SetMeta(ctx context.Context, index string, meta map[string]json.RawMessage) error
	// Count makes an index' documents searchable, and counts them.
	// Count counts what is not a tombstone of that field.
	Count(ctx context.Context, index, markField string) (int64, error)
	// Sample returns up to n documents, without sources: those written last, or
	// any.
	Sample(ctx context.Context, index string, n int, last bool) ([]document.Doc, error)
	// Delete deletes an index; that there is none is no error.
	Delete(ctx context.Context, index string) error
}

// Reindex gives the index behind an alias a successor. All its state is in the
// cluster: any process may take the next step, one at a time.
type Reindex struct {
	Alias   string
	Cluster Cluster

	// Get reads documents as they are now, in the order of refs.
	Get func(ctx context.Context, refs []document.Ref) ([]document.Doc, error)

	// Body is the definition of the new index: {"settings": …, "mappings": …}.
	Body []byte
	// Scan returns the table's items as SNAPSHOT records, read after it was called.
	// A record is read until the next one is asked for.
	Scan func(ctx context.Context) iter.Seq2[*sluice.Record, error]
	// Project returns the writes for a SNAPSHOT record, by the options of the
	// new index. Ops for other indices than Alias are ignored.
	Project func(rec *sluice.Record) ([]document.Op, error)
	// Write writes to an index that is named itself: not by a [Writer].
	Write func(ctx context.Context, op document.Op) error

	Concurrency int // writes of the backfill in progress (default 256)
	Attempts    int // of each, when it fails in a way that may pass (default 8)

	// TTL is the writers' TTL (default 10 s), and Longest the longest time of
	// one of their writes (default 1 min). A deletion of an index waits for
	// both, and the read of the table for TTL.
	TTL, Longest time.Duration

	// MarkField is where documents that are versioned by sequence have their marks;
	// empty for others. What Start was given holds for the steps after it, too.
	MarkField string
	// NewBodies says that they may have other bodies: the projection has changed.
	NewBodies bool
	Sample    int           // documents compared by each of four samples (default 1000)
	Settle    time.Duration // between two looks at what differs (default 5 s)
	Looks     int           // at it (default 5)

	// SkipFailed takes an index as filled although some items cannot be projected
	// or written.
	SkipFailed bool

	// Failed is called for each item of the backfill that cannot be projected, and
	// each document that can never be written (default: nothing).
	Failed func(key sluice.Item, err error)
	// Progress is called for every 1000 items of the backfill (default: nothing).
	Progress func(Backfilled)
	// Step is called with the next step (default: nothing).
	Step func(what string)
}

func (r Reindex) withDefaults() Reindex {
	r.TTL, r.Longest, r.Settle = cmp.Or(r.TTL, DefaultTTL), cmp.Or(r.Longest, time.Minute), cmp.Or(r.Settle, 5*time.Second)
	r.Concurrency, r.Attempts = cmp.Or(r.Concurrency, 256), cmp.Or(r.Attempts, 8)
	r.Sample, r.Looks = cmp.Or(r.Sample, 1000), cmp.Or(r.Looks, 5)
	if r.Failed == nil {
		r.Failed = func(sluice.Item, error) {}
	}
	if r.Progress == nil {
		r.Progress = func(Backfilled) {}
	}
	if r.Step == nil {
		r.Step = func(string) {}
	}
	return r
}
