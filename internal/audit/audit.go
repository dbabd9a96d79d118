package audit

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
)

// Audit compares a table with an index. Its functions run concurrently; Scan, List
// and the hooks do not.
type Audit struct {
	// Scan returns the table's items as SNAPSHOT records. It is called twice when
	// ghosts are looked for. A record is read until the next one is
	// asked for.
	Scan func(ctx context.Context) iter.Seq2[*sluice.Record, error]

	// Project returns the writes for a SNAPSHOT record. It depends only on the
	// record's Table, Keys and New. It must return the writes of all writers of
	// the indices: any other document is a ghost.
	Project func(rec *sluice.Record) ([]document.Op, error)

	// Read reads an item, consistently; a missing item is the absent Item.
	Read func(ctx context.Context, table string, key sluice.Item) (sluice.Item, error)

	// Get reads documents as they are now, in the order of refs.
	Get func(ctx context.Context, refs []document.Ref) ([]document.Doc, error)

	// List returns all documents of an index; their sources are not read. Nil
	// looks for no ghosts, as a sample does.
	List func(ctx context.Context, index string) iter.Seq2[document.Doc, error]

	// Write writes a repair; nil repairs nothing. A refusal because the index
	// has a newer state is not an error.
	Write func(ctx context.Context, op document.Op) error

	// MaxDeletes limits the ghosts that a run deletes (default 1,000, and 5 %
	// of the documents, or one). With more, Run deletes none and returns a
	// [*BrakeError]. Unless TrustTables is set, it also deletes none if more
	// than half of the documents have no item. Documents that the run itself
	// has written do not count.
	MaxDeletes int

	// TrustTables says that the tables are those of the index. Without it, a run
	// with Write first looks whether they are: if not, it writes nothing, and Run
	// returns an [*ApartError].
	TrustTables bool

	// Behind returns the indices behind the name of an index or alias, and
	// nothing for a name that is not an alias (default: each name is an index).
	// So a document is the same under every name.
	Behind func(ctx context.Context, name string) ([]string, error)

	// Foreign reports whether a document without an item is another
	// application's (default: never). Such a document is not a ghost. Foreign
	// gets the whole document. It must be safe for concurrent use.
	Foreign func(doc document.Doc) bool

	// Indices are searched for ghosts, besides the indices that records name.
	Indices []string

	// Marks describe documents that are versioned by sequence; nil is otherwise.
	Marks *Marks

	// Sample is the share of items that are compared, above 0 and up to 1
	// (default 1, all). Which ones, Seed decides (default: others each time).
	Sample float64
	Seed   uint64

	Settle   time.Duration // between two looks at what differs (default 5 s)
	Attempts int           // looks at it after the first (default 5)

	// Found is called for each drift once it is confirmed, and repaired if that is
	// asked for (default: nothing).
	Found func(Drift)
	// Progress is called every few hundred documents (default: nothing).
	Progress func(Result)
}

// Result counts what an audit found.
type Result struct {
	Items     int64 `json:"items"`     // that were compared
	Documents int64 `json:"documents"` // that these items are to have
	Listed    int64 `json:"listed"`    // documents of the index, when ghosts were looked for

	// Confirmed drift.
	Missing   int64 `json:"missing"`
	Stale     int64 `json:"stale"`
	Different int64 `json:"different"`
	Ghosts    int64 `json:"ghosts"`
	Ahead     int64 `json:"ahead"`
	Unfenced  int64 `json:"unfenced"`

	// Foreign are documents without an item that are another application's.
	Foreign int64 `json:"foreign"`

	// Apart says why a repair would write nothing.
	Apart *ApartError `json:"apart,omitempty"`

	// Brake says why no ghost is deleted, or would be by a repair.
	Brake *BrakeError `json:"brake,omitempty"`

	// Failed are items that cannot be projected. Nothing is known about their
	// documents.
	Failed int64 `json:"failed"`

	Settled   int64 `json:"settled"`   // differed at a look and not at a later one: live writes
	Busy      int64 `json:"busy"`      // changed at each look
	Unchecked int64 `json:"unchecked"` // documents without a found item, which may still have one

	Repaired int64 `json:"repaired"` // of the drift: by a repair, or by something newer that came first
	Refused  int64 `json:"refused"`  // of the drift: tried in vain, or not tried
}

// Drift is how many documents are not as they should be.
func (r Result) Drift() int64 {
	return r.Missing + r.Stale + r.Different + r.Ghosts + r.Ahead + r.Unfenced
}

// Clean reports whether the compared parts of table and index agree: no drift, and
// nothing left open. Repaired differences count as drift.
func (r Result) Clean() bool { return r.Drift()+r.Failed+r.Busy+r.Unchecked == 0 }

func (a Audit) withDefaults() Audit {
	a.Sample = cmp.Or(a.Sample, 1)
	a.Seed = cmp.Or(a.Seed, rand.Uint64())
	a.Settle = cmp.Or(a.Settle, 5*time.Second)
	a.Attempts = cmp.Or(a.Attempts, 5)
	if a.Found == nil {
		a.Found = func(Drift) {}
	}
	if a.Progress == nil {
		a.Progress = func(Result) {}
	}
	return a
}

var errEnded = errors.New("the audit ended before")

// Run compares the two. It ends at the first error of a function, and can then be
// run again from the start. The result has the findings up to then. Ghosts are
// deleted at the end, when all of them are known. A [*BrakeError] says that there
// are too many, and an [*ApartError] that nothing was written.
func (a Audit) Run(ctx context.Context) (Result, error) {
	a = a.withDefaults()
	if a.Write != nil && !a.TrustTables {
		if err := a.together(ctx); err != nil {
			apart, _ := errors.AsType[*ApartError](err)
			return Result{Apart: apart}, err
		}
	}
	r := newRun(a)
	r.ghosts = a.List != nil && a.Sample == 1
	err := r.compare(ctx)
	if err == nil && r.ghosts {
		err = r.searchGhosts(ctx)
	}
	if err == nil {
		r.result.Apart = r.apart()
		err = r.release(ctx)
	}
	r.leave(errEnded)
	r.Progress(r.result)
	return r.result, err
}
