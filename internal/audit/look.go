package audit

import (
	"context"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/parallel"
)

const (
	maxWaiting = 10_000 // candidates between two looks
	chunkSize  = 100    // documents in one Get of a later look
	readers    = 16     // items that are read at once
)

// look is the observed state of an item and one of its documents.
type look struct {
	item   uint64 // a hash of it; 0 is absent
	wanted bool   // the item is to have a say about the document
	want   int64  // the version that it is to have

	found bool
	have  int64
	body  uint64 // a hash of it
}

var seed = maphash.MakeSeed()

func (l *look) see(doc document.Doc) {
	l.found, l.have, l.body = doc.Found, 0, 0
	if doc.Found {
		l.have, l.body = doc.Version, maphash.Bytes(seed, doc.Source)
	}
}

// candidate is a document that differed when it was last looked at.
type candidate struct {
	rec   sluice.Record // of its item, without images
	ref   document.Ref
	was   look
	due   time.Time // of the next look
	looks int       // after the first
}

// wait takes in a document that differs. When too many wait, it is the scan's
// turn to wait for them.
func (r *run) wait(ctx context.Context, c candidate) error {
	if len(r.waiting) >= maxWaiting {
		if err := r.settle(ctx, true); err != nil {
			return err
		}
	}
	c.due = time.Now().Add(r.Settle)
	r.waiting = append(r.waiting, c)
	return nil
}

// settle looks again at those candidates whose time has come; with block it
// waits for the first.
func (r *run) settle(ctx context.Context, block bool) error {
	if block && len(r.waiting) > 0 {
		if err := backoff.Sleep(ctx, time.Until(r.waiting[0].due)); err != nil {
			return err
		}
	}
	now := time.Now()
	for len(r.waiting) > 0 && !r.waiting[0].due.After(now) {
		n := 1
		for n < min(len(r.waiting), chunkSize) && !r.waiting[n].due.After(now) {
			n++
		}
		chunk := r.waiting[:n]
		r.waiting = r.waiting[n:]
		again, err := r.look(ctx, chunk)
		if err != nil {
			return err
		}
		for _, c := range again {
			c.due = time.Now().Add(r.Settle)
			r.waiting = append(r.waiting, c)
		}
		r.Progress(r.result)
	}
	return nil
}

// look checks candidates again, and returns those that are still open. It reads
// the documents before the items, so each item is at least as new as its document.
func (r *run) look(ctx context.Context, chunk []candidate) (again []candidate, err error) {
	docs, err := get(ctx, r, chunk, func(c candidate) document.Ref { return c.ref })
	if err != nil {
		return nil, err
	}
	open, errs := make([]bool, len(chunk)), make([]error, len(chunk))
	parallel.Do(len(chunk), readers, func(i int) { open[i], errs[i] = r.lookAt(ctx, &chunk[i], docs[i]) })
	for i, c := range chunk {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if open[i] {
			again = append(again, c)
		}
	}
	return again, nil
}

// lookAt looks again at one document, and ends its turn if it can.
func (r *run) lookAt(ctx context.Context, c *candidate, doc document.Doc) (open bool, err error) {
	op, now, err := r.read(ctx, c)
	if err != nil {
		return false, err
	}
	if now == nil { // it cannot be projected any more
		return false, nil
	}
	now.see(doc)
	kind, path := r.judge(op, doc)
	was := c.was
	c.was = *now
	c.looks++
	switch {
	case kind == 0:
		r.add(&r.result.Settled)
		return false, nil
	case *now == was:
	case kind == Stale && was.wanted && now.have < was.want && now.body == was.body:
		// The item has moved on, but its document still is what differed from the
		// item as it was then. Its version alone would not tell: what leaves a
		// document as it is does not raise it.
	case c.looks < r.Attempts:
		return true, nil
	default:
		r.add(&r.result.Busy)
		return false, nil
	}
	d := Drift{Kind: kind, Ref: c.ref, Table: c.rec.Table, Key: c.rec.Keys, Want: now.want, Have: now.have, Path: path}
	if op != nil && (op.Fence == document.NoFence || op.Fence == document.Exact) {
		d.Want = 0
	}
	return false, r.repair(ctx, d, op, doc)
}

// read reads a candidate's item and the document that it needs: a nil op if the
// item is absent or has no such document. For an item that cannot be projected, it
// reports the item and returns nil.
func (r *run) read(ctx context.Context, c *candidate) (*document.Op, *look, error) {
	it, err := r.Read(ctx, c.rec.Table, c.rec.Keys)
	if err != nil {
		return nil, nil, fmt.Errorf("audit: reading %s of table %s: %w", c.rec.Keys.Raw(), c.rec.Table, err)
	}
	now := &look{}
	if !it.Exists() {
		return nil, now, nil
	}
	now.item = it.Hash()
	rec := c.rec
	rec.New = it
	ops, err := r.Project(&rec)
	if err != nil {
		r.found(Drift{Kind: Failed, Table: c.rec.Table, Key: c.rec.Keys, Err: err})
		return nil, nil, nil
	}
	if ops, err = r.wanted(ctx, ops); err != nil {
		return nil, nil, err
	}
	for _, op := range ops {
		same, err := r.same(ctx, op.Ref(), c.ref)
		if err != nil {
			return nil, nil, err
		}
		if same {
			now.wanted, now.want = true, op.Version
			return &op, now, nil
		}
	}
	return nil, now, nil
}

func (r *run) add(n *int64) {
	r.mu.Lock()
	*n++
	r.mu.Unlock()
}
