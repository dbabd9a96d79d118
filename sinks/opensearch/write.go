package opensearch

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice/effect/document"
)

// write is one operation on its way.
//
// Those of one document stand in a lane, in the order of the calls. The first
// goes into a batch. When its request is made, those that wait behind it then
// go with it, and the last of them stands for all; what comes later
// waits until the result is there. So none overtakes another one of its
// document, and a hot document costs one operation a request.
type write struct {
	op   *document.Op
	way  *document.Op // in which op is tried now; nil: as it is
	lane uint64
	call *call

	// Guarded by order.mu until the write has gone into a commit, and again
	// when that has ended.
	place place
	next  *write // behind it in the lane
	last  *write // of the lane; only of its first

	// Of its commits.
	line     *line     // with those that go with it; nil: it is alone
	begun    time.Time // the first
	failed   *failure  // of the last try
	compared int       // times that the document was read to compare sequences
	open     bool      // it has no result, and is for another commit
	err      error     // errEnded until it has a result
}

// line is a write with those that go with it.
type line struct {
	all  []*write // the latest last
	left int      // those from the beginning that have no result
}

type place uint8

const (
	away    place = iota // in no lane: not yet, no more, or it goes with the first
	waiting              // behind others
	first                // of its lane: to be put into a batch, or in one
)

// sent is what is sent for the write.
func (w *write) sent() *document.Op {
	if w.way != nil {
		return w.way
	}
	return w.op
}

// current is what is sent for w and those that go with it.
func (w *write) current() *write {
	if w.line == nil {
		return w
	}
	return w.line.all[w.line.left-1]
}

// each calls f for w and those that go with it and have no result yet.
func (w *write) each(f func(*write)) {
	if w.line == nil {
		f(w)
		return
	}
	for _, x := range w.line.all[:w.line.left] {
		f(x)
	}
}

// alike reports whether one of two writes can stand for both: they are of one
// document, and the same rule says which is the later one.
func alike(a, b *document.Op) bool {
	return a.ID == b.ID && a.Index == b.Index && a.Routing == b.Routing && rule(a.Fence) == rule(b.Fence) && a.Fence != document.Unchanged
}

// rule is the fence that stands for all with the same rule.
func rule(f document.Fence) document.Fence {
	if f == document.NewerOrEqual {
		return document.Newer
	}
	return f
}

// insert puts w behind those that it may follow: the last one stands for all.
func (l *line) insert(w *write) {
	at := len(l.all)
	for at > 0 && !follows(w.op, l.all[at-1].op) {
		at--
	}
	l.all = slices.Insert(l.all, at, w)
	l.left = len(l.all)
}

// follows reports whether the cluster would write op, which came later, over
// before.
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
