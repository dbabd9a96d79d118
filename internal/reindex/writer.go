package reindex

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
)

// DefaultTTL is how long writers cache aliases.
const DefaultTTL = 10 * time.Second

// Writer writes to the index behind an alias, and to a second one during a
// reindex. All writers of an alias must be Writers with the same TTL: another
// writer writes to the first index alone, which a comparison finds.
type Writer struct {
	// Write writes to an index.
	Write func(ctx context.Context, op document.Op) error
	// Behind returns the indices behind each alias, and nothing for a name that is
	// no alias.
	Behind func(ctx context.Context, aliases ...string) (map[string][]string, error)

	// TTL is how long an answer of Behind is used (default 10 s). It is asked
	// again by the first write after that; no goroutine runs.
	TTL time.Duration

	// Deletes reports whether an op removes a document (default: Delete does,
	// and every Exact op, because it may be a tombstone). Set it if you write
	// tombstones instead of deletions.
	Deletes func(op document.Op) bool
}

// New returns the function that writes to wherever the aliases lead: nil when
// every index has taken the op. It is safe for concurrent use.
func (w Writer) New() func(ctx context.Context, op document.Op) error {
	if w.Deletes == nil {
		w.Deletes = func(op document.Op) bool { return op.Action == document.Delete || op.Fence == document.Exact }
	}
	v := &views{behind: w.Behind, ttl: cmp.Or(w.TTL, DefaultTTL), known: map[string]*view{}, asked: map[string]chan struct{}{}}
	return func(ctx context.Context, op document.Op) error {
		is, err := v.of(ctx, op.Index)
		if err != nil {
			return op.Relabel(err)
		}
		var refused error
		for _, index := range is.targets(op.Index, w.Deletes(op)) {
			op.Index = index
			switch err := w.Write(ctx, op); {
			case err == nil:
			case !sluice.IsPermanent(err):
				return err // and all are repeated
			case refused == nil:
				refused = err // the other index may take it, and be the one to go back to
			}
		}
		return refused
	}
}

// targets returns the indices for a write of name. It returns the indices and not
// the alias: the alias may move before the write, and then one of the two would
// miss it. A name that is not an alias is an index. For an alias of several
// indices the cluster knows which one is written.
func (v *view) targets(name string, deletes bool) []string {
	targets := []string{name}
	if len(v.primary) == 1 {
		targets[0] = v.primary[0]
	}
	targets = append(targets, v.also...)
	if deletes {
		targets = append(targets, v.deletes...)
	}
	for i := len(targets) - 1; i > 0; i-- {
		if slices.Contains(targets[:i], targets[i]) {
			targets = slices.Delete(targets, i, i+1)
		}
	}
	return targets
}
