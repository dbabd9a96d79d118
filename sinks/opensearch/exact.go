package opensearch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
)

// The Version of an Exact write abridges its Sequence: two changes within a few
// seconds can have the same version. If the cluster accepts the version, the write
// is the later change, and one request was enough. If it refuses the version, the
// sink reads the document and compares the Sequences. It replaces an older document
// by if_seq_no, so that a concurrent write is never lost.
//
// Invariant: the version of a document is at least the version of its Sequence. An
// external version equals it, and a write by if_seq_no adds one. So the cluster
// never accepts an older change.
//
// The sink remembers the revisions of its last writes. Consecutive changes with one
// version then take one request each.

// maxCompared is how often the sink compares for one write before the write backs
// off: another writer keeps changing the document.
const maxCompared = 8

// compare reads the documents of Exact writes whose version the cluster refused,
// and decides what becomes of each.
func (c *committing) compare(ctx context.Context, ws []*write) {
	for chunk := range slices.Chunk(ws, maxGet) {
		reads, err := c.sink.marks(ctx, chunk)
		for i, w := range chunk {
			failed := err
			if failed == nil {
				failed = reads[i].err
			}
			if failed == nil {
				c.decide(w, reads[i].doc)
				continue
			}
			o := judgeRequest(failed)
			if o == tooLarge || o == spoiled {
				o = refused
			}
			c.settle(w, o, failureOf(ctx, failed))
		}
	}
}

// marks reads the marks of the documents of ws, and the whole document if the
// caller needs to know what refused a write. It asks the primary copy of each
// shard, because a replica may lag.
func (s *Sink) marks(ctx context.Context, ws []*write) ([]docRead, error) {
	refs := make([]getRef, len(ws))
	for i, w := range ws {
		op := w.current().op
		refs[i] = getRefOf(op.Ref(), op.MarkField)
		w.each(func(x *write) {
			if x.op.Refused != nil {
				refs[i].Only = nil
			}
		})
	}
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout/3)
	defer cancel()
	return multiGet(ctx, s.client.Call, "/_mget?preference=_primary", refs)
}

// decide settles a write, or chooses how to try it again.
func (c *committing) decide(w *write, doc document.Doc) {
	now := w.current()
	mark, err := doc.Mark(now.op.MarkField)
	switch {
	case err != nil:
		c.settle(w, refused, failure{said: said{status: 409}, err: err})
		return
	case doc.Found && mark.Sequence >= now.op.Sequence:
		c.settle(w, conflict, failure{by: document.Refusal{Version: doc.Version, Doc: doc}})
		return
	case doc.Found && doc.Revision.PrimaryTerm < 1:
		c.settle(w, refused, failure{said: said{status: 409}, err: errors.New("the answer lacks _seq_no or _primary_term, which the next write needs")})
		return
	case !doc.Found && now.way != nil && now.way.Fence != document.Unchanged && now.way.Version == overTies(now.op):
		// The index remembers a deletion with a greater version. With
		// tombstones only a sweep, a repair or a person deletes: the write is
		// later, unless it is a tombstone itself. Without tombstones it is
		// unknown which is later: Refused reports it.
		if now.op.ForgetDeleted || docrules.IsTombstone(*now.op) {
			c.settle(w, conflict, failure{by: document.Refusal{Deleted: true}})
		} else {
			c.settle(w, refused, failure{said: said{status: 409}, err: errors.New("the index remembers a deletion with a greater version: the write waits until the index forgets it (index.gc_deletes)")})
		}
		return
	}
	if now.compared++; now.compared%maxCompared == 0 {
		c.settle(w, passing, failure{said: said{status: 409}, err: errors.New("another writer keeps changing the document")})
		return
	}
	way := *now.op
	switch {
	case !doc.Found: // the index may remember an earlier deletion of the same version
		way.Fence, way.Version = document.Newer, overTies(now.op)
		if now.op.ForgetDeleted { // with possibly the same version
			way.Fence = document.NewerOrEqual
		}
	case doc.Version >= now.op.Version:
		way.Fence, way.Version, way.Revision = document.Unchanged, doc.Version+1, doc.Revision
	}
	now.way = &way
	c.again = append(c.again, w)
}

// overTies returns the last version of a change before the next version.
func overTies(op *document.Op) int64 { return op.Version | (1<<docrules.TieBits - 1) }

// recent holds the last Exact writes of a sink.
type recent struct {
	mu          sync.Mutex
	now, before map[document.Ref]written
}

// written is a document right after its write.
type written struct {
	sequence string
	version  int64
	revision document.Revision
	deleted  bool
	at       time.Time
}

const (
	maxRecent = 8192 // in each of its two maps
	// recentFor is how long a revision is used. Changes with one version are seconds
	// apart, and an alias may lead to another index later.
	recentFor = time.Minute
)

// look makes a write use the revision of its document if the cluster would refuse
// its version.
func (r *recent) look(w *write) {
	op := w.op
	if op.Fence != document.Exact || w.way != nil {
		return
	}
	r.mu.Lock()
	is, ok := r.now[op.Ref()]
	if !ok {
		is, ok = r.before[op.Ref()]
	}
	r.mu.Unlock()
	if !ok || is.version < op.Version || is.sequence >= op.Sequence || time.Since(is.at) > recentFor {
		return
	}
	way := *op
	way.Fence, way.Version, way.Revision = document.Unchanged, is.version+1, is.revision
	if is.deleted {
		way.Fence = document.Newer
	}
	w.way = &way
}

// wrote remembers a successful write.
func (r *recent) wrote(w *write, at document.Revision) {
	if w.op.Fence != document.Exact || at.PrimaryTerm == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.now) >= maxRecent || r.now == nil {
		r.now, r.before = make(map[document.Ref]written), r.now
	}
	r.now[w.op.Ref()] = written{w.op.Sequence, w.sent().Version, at, w.op.Action == document.Delete, time.Now()}
}
