package opensearch

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/document"
)

// The Version of an Exact write is an abridged Sequence: two changes that follow
// each other within about a second can have the same one. A write whose version
// is greater than that of the document is the later one, and done with one
// request. Else the document is read, and its whole Sequence compared. What is
// older is written over it if nobody was faster (if_seq_no).
//
// The version of a document is never below that of its Sequence: an external
// version is that, and a write by if_seq_no adds one to a version that is not
// below it. So no older change is ever taken for a later one.

// Of what this sink wrote last the revision is known, so that even changes of one
// version that follow each other take one request each.

// maxCompared is how often a document is read for one write before the write
// waits a while: somebody else writes it all the time.
const maxCompared = 8

// compare decides about Exact writes whose version was refused.
func (c *committing) compare(ctx context.Context, ws []*write) {
	for chunk := range slices.Chunk(ws, maxGet) {
		docs, err := c.sink.marks(ctx, chunk)
		if err != nil {
			o := judgeRequest(err)
			if o == tooLarge || o == spoiled {
				o = refused
			}
			f := failureOf(err)
			for _, w := range chunk {
				c.settle(w, o, f)
			}
			continue
		}
		for i, w := range chunk {
			c.decide(w, docs[i])
		}
	}
}

// marks reads the documents of ws, of their sources the marks alone. A copy of the
// shard may not know yet what the primary has written: only that one is asked.
func (s *Sink) marks(ctx context.Context, ws []*write) ([]document.Doc, error) {
	var fields []string
	refs := make([]document.Ref, len(ws))
	for i, w := range ws {
		op := w.current().op
		refs[i] = op.Ref()
		if field := url.QueryEscape(op.MarkField); !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout/3)
	defer cancel()
	return getBy(ctx, s.client.Call, "/_mget?preference=_primary&_source_includes="+strings.Join(fields, ","), make([]document.Doc, 0, len(refs)), refs)
}

// decide says what becomes of a write, now that the document is known.
func (c *committing) decide(w *write, doc document.Doc) {
	now := w.current()
	mark, err := doc.Mark(now.op.MarkField)
	switch {
	case err != nil:
		c.settle(w, refused, failure{status: 409, err: err})
		return
	case doc.Found && mark.Sequence >= now.op.Sequence:
		c.settle(w, conflict, failure{})
		return
	case doc.Found && doc.Revision.PrimaryTerm < 1:
		c.settle(w, refused, failure{status: 409, err: errors.New("the document was read without its _seq_no and _primary_term, by which it is to be written")})
		return
	case !doc.Found && now.way != nil && now.way.Fence == document.NewerOrEqual:
		// What was deleted there had a greater version. With tombstones nothing is
		// deleted but what is days old, or was never marked, or by hand.
		if now.op.ForgetDeleted {
			c.settle(w, conflict, failure{})
		} else {
			c.settle(w, refused, failure{status: 409, err: errors.New("a document was deleted there whose version was greater than that of any change: it is written when the index has forgotten that (index.gc_deletes)")})
		}
		return
	}
	if now.compared++; now.compared%maxCompared == 0 {
		c.settle(w, passing, failure{status: 409, err: errors.New("somebody else writes the document all the time")})
		return
	}
	way := *now.op
	switch {
	case !doc.Found: // an equal version may be of a deletion that came before
		way.Fence, way.Version = document.NewerOrEqual, now.op.Version|(1<<document.TieBits-1)
	case doc.Version >= now.op.Version:
		way.Fence, way.Version, way.Revision = document.Unchanged, doc.Version+1, doc.Revision
	}
	now.way = &way
	c.again = append(c.again, w)
}

// recent knows the documents that were written last by Exact writes.
type recent struct {
	mu          sync.Mutex
	now, before map[document.Ref]seen
}

// seen is a document as it was when it was written.
type seen struct {
	sequence string
	version  int64
	revision document.Revision
	deleted  bool
	at       time.Time
}

const (
	maxRecent = 8192 // in each of its two maps
	// recentFor is how long a revision is used. Changes of one version are seconds
	// apart; and an index of the same name may be another by then.
	recentFor = time.Minute
)

// look has a write go by the revision of its document where its version would be
// refused although it is later.
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

// wrote notes what was written.
func (r *recent) wrote(w *write, at document.Revision) {
	if w.op.Fence != document.Exact || at.PrimaryTerm == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.now) >= maxRecent || r.now == nil {
		r.now, r.before = make(map[document.Ref]seen), r.now
	}
	r.now[w.op.Ref()] = seen{w.op.Sequence, w.sent().Version, at, w.op.Action == document.Delete, time.Now()}
}
