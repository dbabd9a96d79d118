package audit

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sluicehq/sluice/effect/document"
)

// sampleSize is how many documents of items tell whether table and index belong
// together, as long as most of them are there.
const sampleSize = 1000

// ApartError says that a table is likely to be another one than the index's, so
// that no repair is written.
type ApartError struct {
	Table  string `json:"table"`
	Wanted int64  `json:"wanted"` // documents that were looked for, by the table's items
	Found  int64  `json:"found"`  // of these

	// Strangers are documents for which no table has an item; -1: they were not
	// looked for.
	Strangers int64 `json:"strangers"`
}

// Error says why, and what to do.
func (e *ApartError) Error() string {
	text := fmt.Sprintf("nothing is written: the index has %d of the %d documents that the items of table %s ask for", e.Found, e.Wanted, e.Table)
	if e.Strangers >= 0 {
		text += fmt.Sprintf(", and %d without an item", e.Strangers)
	}
	return text + "; check the names of table and index, the account and the Region"
}

// tally is how many documents the items of one table ask for, and how many of
// them the first look found.
type tally struct{ wanted, found int64 }

func (r *run) tally(p pair, doc document.Doc) {
	if p.op.Action != document.Put {
		return
	}
	t := r.tallies[p.rec.Table]
	if t == nil {
		t = &tally{}
		r.tallies[p.rec.Table] = t
	}
	t.wanted++
	if doc.Found {
		t.found++
	}
}

// unmatched returns what speaks against a table: most of its documents are not
// there, and there are more strangers than documents of it.
func (r *run) unmatched(strangers int64) *ApartError {
	for _, table := range slices.Sorted(maps.Keys(r.tallies)) {
		if t := r.tallies[table]; 2*t.found < t.wanted && t.found < strangers {
			return &ApartError{Table: table, Wanted: t.wanted, Found: t.found, Strangers: strangers}
		}
	}
	return nil
}

// apart is unmatched after a whole run; nil when that did not look for ghosts.
func (r *run) apart() *ApartError {
	if !r.ghosts || r.TrustTables {
		return nil
	}
	return r.unmatched(r.brake.homeless + r.result.Unchecked)
}

// together returns an [*ApartError] unless the tables are those of the index. It
// writes nothing. Most times a sample of the items tells. Where it has few
// documents, the index may be new, the items may be, or the documents may be lost:
// then all of the two is compared before the first write.
func (a Audit) together(ctx context.Context) error {
	a.Write, a.Found = nil, func(Drift) {}
	partly := a.Sample < 1
	a.Sample = 1
	sample := newRun(a)
	sample.most = sampleSize
	if err := sample.compare(ctx); err != nil {
		return err
	}
	doubt := sample.unmatched(math.MaxInt64)
	if doubt == nil {
		return nil
	}
	if a.List != nil {
		if empty, err := sample.empty(ctx); err != nil || empty {
			return err
		}
	}
	if a.List == nil || partly {
		doubt.Strangers = -1
		return fmt.Errorf("audit: %w", doubt)
	}
	whole := newRun(a)
	whole.ghosts = true
	if err := whole.compare(ctx); err != nil {
		return err
	}
	if err := whole.searchGhosts(ctx); err != nil {
		return err
	}
	if e := whole.apart(); e != nil {
		return fmt.Errorf("audit: %w", e)
	}
	return nil
}

// empty reports whether the indices that were named have no document.
func (r *run) empty(ctx context.Context) (bool, error) {
	for index := range r.indices {
		for _, err := range r.List(ctx, index) {
			if err != nil {
				return false, fmt.Errorf("audit: listing index %s: %w", index, err)
			}
			return false, nil
		}
	}
	return true, nil
}
