package projection

import (
	"fmt"
	"sync/atomic"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docversion"
)

// generations caches the last stream: records of another stream are rare.
type generations struct {
	last atomic.Pointer[docversion.Generation]
}

// fence returns the fence of a record.
func (g *generations) fence(rec *sluice.Record) (fence, error) {
	if isBackfilled(rec) {
		return fence{kind: document.Exact, version: docversion.Backfilled, sequence: docversion.BeforeAll}, nil
	}
	if !rec.Sequence.Valid() {
		return fence{}, fmt.Errorf("the record has the sequence number %q, want 1 to 40 digits", string(rec.Sequence))
	}
	gen := g.last.Load()
	if gen == nil || gen.ARN != rec.StreamARN {
		var err error
		if gen, err = docversion.ParseGeneration(rec.StreamARN); err != nil {
			return fence{}, err
		}
		g.last.Store(gen)
	}
	return fence{kind: document.Exact, version: gen.Version(rec.Sequence), sequence: gen.Sequence(rec.Sequence)}, nil
}

// isBackfilled reports whether rec is an item from a backfill. A current item in
// place of a change has the change's sequence number.
func isBackfilled(rec *sluice.Record) bool {
	return rec.EventName == sluice.Snapshot && rec.Sequence == ""
}
