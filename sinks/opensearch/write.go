package opensearch

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice/effect/document"
)

// write is one pending operation.
//
// The writes of one document are in a lane, in the order of the calls. The first
// goes into a batch. When its request is made, the writes behind it join it, and
// the last of them is sent for all. Later writes wait for the result. So no write
// overtakes another of its document, and a hot document costs one operation per
// request.
type write struct {
	op   *document.Op
	way  *document.Op // the form in which op is tried now; nil: unchanged
	lane uint64
	call *call

	// Guarded by order.mu until the write has joined a commit, and again after
	// that.
	place place
	next  *write // behind it in the lane
	last  *write // of the lane; only in its first

	// Used by its commits.
	line     *line     // with the writes that joined it; nil: alone
	begun    time.Time // first try
	failed   *failure  // last failure that says why
	tries    int       // failed ones
	compared int       // reads of the document to compare sequences
	open     bool      // no result yet; for a later commit
	err      error     // errEnded until it has a result
}

// line is a write with the writes that joined it.
type line struct {
	all  []*write // latest last
	left int      // first ones without a result
}

type place uint8

const (
	away    place = iota // in no lane, or joined to the first
	waiting              // behind others
	first                // in its lane: to be batched, or in a batch
)

// sent returns the operation that is sent for the write.
func (w *write) sent() *document.Op {
	if w.way != nil {
		return w.way
	}
	return w.op
}

// current returns the write that is sent for w and for the writes that joined it.
func (w *write) current() *write {
	if w.line == nil {
		return w
	}
	return w.line.all[w.line.left-1]
}

// each calls f for w and the writes that joined it, unless they have a result.
func (w *write) each(f func(*write)) {
	if w.line == nil {
		f(w)
		return
	}
	for _, x := range w.line.all[:w.line.left] {
		f(x)
	}
}

// alike reports whether one of two writes can stand for both: they have the same
// document, and the same rule decides which is later.
func alike(a, b *document.Op) bool {
	return a.ID == b.ID && a.Index == b.Index && a.Routing == b.Routing && rule(a.Fence) == rule(b.Fence) && a.Fence != document.Unchanged
}

// rule returns a fence that represents all fences with the same rule.
func rule(f document.Fence) document.Fence {
	if f == document.NewerOrEqual {
		return document.Newer
	}
	return f
}

// insert puts w behind the writes that it may follow; the last one is sent for
// all.
func (l *line) insert(w *write) {
	at := len(l.all)
	for at > 0 && !follows(w.op, l.all[at-1].op) {
		at--
	}
	l.all = slices.Insert(l.all, at, w)
	l.left = len(l.all)
}

// follows reports whether the cluster would write the later op over before.
func follows(op, before *document.Op) bool {
	switch op.Fence {
	case document.Newer:
		return op.Version > before.Version
	case document.NewerOrEqual:
		return op.Version >= before.Version
	case document.Exact:
		return op.Sequence > before.Sequence
	}
	return true
}
