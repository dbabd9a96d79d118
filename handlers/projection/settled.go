package projection

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
	"github.com/sluicehq/sluice/internal/docversion"
)

// settles reports whether the table must be read after a refusal of op. Nearly
// always the refusal suffices: the document shows a later change. There are two
// exceptions.
//
// A backfill's write has the lowest version, so every document refuses it. Its
// item may still be the later state: the item's change was lost, for example in a
// gap of the stream.
//
// Without tombstones the index can remember a deletion with a version that no
// change has: of a document from before the index was adopted.
func (p *Projection) settles(rec *sluice.Record, op document.Op) bool {
	return op.Fence == document.Exact && op.Action == document.Put && (isBackfilled(rec) || p.o.ForgetDeleted)
}

// forgetAfter is the delay before a write refused by a deletion is retried: the
// index forgets the deletion after index.gc_deletes.
const forgetAfter = time.Minute

// writeSettled writes op. If op is refused and the refusal does not suffice, it reads
// the table. It reads the item after the document, so the item is not older.
func (p *Projection) writeSettled(ctx context.Context, rec *sluice.Record, op document.Op) error {
	var refusals []document.Refusal
	op.Refused = func(r document.Refusal) { refusals = append(refusals, r) }
	if err := p.write(ctx, op); err != nil {
		return err
	}
	deleted, behind := p.doubts(rec, op, refusals)
	if !deleted && behind == "" {
		return nil
	}
	it, err := p.read(ctx, rec)
	switch {
	case err != nil:
		return err
	case !it.Exists():
		return nil // deleted now, or by a later record
	case deleted:
		return sluice.RetryAfter(forgetAfter, fmt.Errorf("projection: %s of table %s: the item exists, and the index remembers a deletion of its document with a greater version: the write waits until the index forgets it (index.gc_deletes)", rec.EventName, rec.Table))
	}
	return p.repair(ctx, rec, it, op.Ref(), refusals)
}

// doubts returns what the refusals of op leave open: whether no document exists,
// and for a backfill the latest sequence of a tombstone or of a document that
// differs from the item.
func (p *Projection) doubts(rec *sluice.Record, op document.Op, refusals []document.Refusal) (deleted bool, behind string) {
	for _, r := range refusals {
		deleted = deleted || r.Deleted
		if !isBackfilled(rec) || !r.Doc.Found {
			continue
		}
		mark, err := r.Doc.Mark(op.MarkField)
		if err != nil {
			continue // the sink has read it
		}
		if mark.Deleted != "" || !shows(r.Doc.Source, mark.Sequence, op) {
			behind = max(behind, mark.Sequence)
		}
	}
	return deleted, behind
}

// shows reports whether a document equals op's, except for its mark.
func shows(source []byte, sequence string, op document.Op) bool {
	if bytes.Equal(source, bytes.Replace(op.Body, []byte(op.Sequence), []byte(sequence), 1)) {
		return true // the usual case, without parsing JSON
	}
	_, same := docrules.Compare(op.Body, source, op.MarkField)
	return same
}

// repair writes the current item if its document still differs. The write sorts
// right after the change that the document shows: a later change stays, or
// overwrites it.
func (p *Projection) repair(ctx context.Context, rec *sluice.Record, it sluice.Item, ref document.Ref, refusals []document.Refusal) error {
	now := *rec
	now.New = it
	s := p.scratch.Get().(*scratch)
	defer p.release(s)
	ops, err := p.ops(s, &now)
	if err != nil {
		return err
	}
	if len(ops) == 0 || ops[0].Ref() != ref {
		return nil // a later record handles an item that has moved or has no document
	}
	_, behind := p.doubts(rec, ops[0], refusals)
	if behind == "" {
		return nil
	}
	if err := s.writer.write(source{image: it, keys: rec.Keys}); err != nil {
		return permanent(rec, err)
	}
	put := p.put(s, ref, fence{kind: document.Exact, version: docversion.Least(behind), sequence: behind + docversion.Repaired})
	refusals = nil
	put.Refused = func(r document.Refusal) { refusals = append(refusals, r) }
	if err := p.write(ctx, put); err != nil {
		return err
	}
	// A change written meanwhile may still be older than the item.
	if deleted, behind := p.doubts(rec, put, refusals); deleted || behind != "" {
		return fmt.Errorf("projection: %s of table %s: another writer changes the document: the next try compares again", rec.EventName, rec.Table)
	}
	return nil
}
