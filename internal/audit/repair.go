package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice/effect/document"
)

var (
	errAhead   = errors.New("nothing here can tell which of the two is right; if it is the item, raise its version above the document's")
	errRefused = errors.New("the index does not take it: a newer version was deleted there not long ago; repair again when index.gc_deletes has passed")
)

// repair repairs a confirmed drift, if requested, and reports it. A ghost waits
// until all are known. doc is the document as read before its item, and op the
// write that the item needs.
func (r *run) repair(ctx context.Context, d Drift, op *document.Op, doc document.Doc) error {
	if d.Kind == Ghost {
		r.hold(d, doc, op == nil)
		return nil
	}
	if r.Write != nil {
		if d.Kind == Ahead {
			d.Err = errAhead
		} else if d.Err = r.write(ctx, r.remedy(d, op, doc)); d.Err == nil {
			d.Repaired = true
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	r.found(d)
	return nil
}

// remedy returns the write that repairs d. Any state newer than the one read is
// newer than the repair.
func (r *run) remedy(d Drift, op *document.Op, doc document.Doc) document.Op {
	if r.Marks != nil {
		return r.Marks.remedy(d, op, doc)
	}
	if d.Kind == Ghost {
		return document.Op{
			Action: document.Delete, Index: d.Ref.Index, ID: d.Ref.ID, Routing: d.Ref.Routing,
			Fence: document.NewerOrEqual, Version: doc.Version,
		}
	}
	fix := *op
	switch {
	case fix.Fence != document.NoFence:
		fix.Fence = document.NewerOrEqual
	case doc.Found:
		// The item was read after the document, so it is not older than this
		// version. Later changes have a greater version.
		fix.Fence, fix.Version = document.NewerOrEqual, doc.Version
	default:
		// Whatever has been written there since is not older than 1.
		fix.Fence, fix.Version = document.Newer, 1
	}
	return fix
}

// write writes a remedy and reads the result: a refusal by version is not an error
// of Write.
func (r *run) write(ctx context.Context, fix document.Op) error {
	if err := r.Write(ctx, fix); err != nil || fix.Fence == document.Unchanged {
		return err // another writer was faster
	}
	docs, err := r.Get(ctx, []document.Ref{fix.Ref()}) // tombstones, too
	if err != nil || len(docs) != 1 {
		return fmt.Errorf("it was written, and cannot be read: %w", err)
	}
	doc := docs[0]
	if doc.Found && doc.Version > fix.Version {
		return nil // another writer was faster
	}
	if kind, _ := judge(&fix, doc); kind != 0 {
		return errRefused
	}
	return nil
}
