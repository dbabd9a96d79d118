package audit

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
)

// Marks describe documents that are versioned by sequence. A tombstone is not a
// document. The comparison ignores marks.
type Marks struct {
	Field string // in which each has its mark
	// ForgetDeleted says that deleted documents leave no tombstones.
	ForgetDeleted bool
	// LeastVersion returns the version that the document of a change has at least;
	// nil: versions are not looked at. docversion.Least is one.
	LeastVersion func(sequence string) int64
	// Tombstones lists those of an index or alias, with versions, revisions and
	// sources; nil: they are not looked at.
	Tombstones func(ctx context.Context, name string) iter.Seq2[document.Doc, error]
}

// shown is a document as a search shows it.
func (m *Marks) shown(doc document.Doc) document.Doc {
	if m != nil {
		mark, err := doc.Mark(m.Field)
		doc.Found = doc.Found && (err != nil || mark.Deleted == "")
	}
	return doc
}

// least is the version that a document should have at least.
func (m *Marks) least(doc document.Doc) int64 {
	mark, err := doc.Mark(m.Field)
	if err != nil || mark.Sequence == "" || m.LeastVersion == nil {
		return 0
	}
	return m.LeastVersion(mark.Sequence)
}

// tombstones looks for those whose version is too low: another program copied them,
// and an older change would restore the document. A tombstone in the place of a
// document that an item asks for is reported as missing.
func (s *search) tombstones(ctx context.Context, name string) error {
	if s.Marks == nil || s.Marks.Tombstones == nil {
		return nil
	}
	for doc, err := range s.Marks.Tombstones(ctx, name) {
		if err != nil {
			return fmt.Errorf("audit: listing tombstones of index %s: %w", name, err)
		}
		one := s.unseenAt(name, doc)
		if one.doc.Version >= s.Marks.least(one.doc) || s.seen.has(one.place) {
			continue
		}
		if err := s.repair(ctx, Drift{Kind: Unfenced, Ref: one.doc.Ref, Have: one.doc.Version}, nil, one.doc); err != nil {
			return err
		}
	}
	return nil
}

// judge compares an item's document with the existing one.
func (r *run) judge(want *document.Op, doc document.Doc) (kind Kind, path string) {
	if kind, path = judge(want, doc); kind == 0 && doc.Found && r.Marks != nil && doc.Version < r.Marks.least(doc) {
		return Unfenced, ""
	}
	return kind, path
}

// remedy returns the write that repairs d. It keeps the mark of the document,
// which was read before the item: a write since then stays, and a later one
// overwrites the repair.
func (m *Marks) remedy(d Drift, op *document.Op, doc document.Doc) document.Op {
	doc.Found = doc.Revision.PrimaryTerm > 0 // a tombstone is one here
	mark, _ := doc.Mark(m.Field)
	mark.Deleted = ""
	switch {
	case d.Kind == Unfenced:
		return document.Op{
			Action: document.Put, Index: d.Ref.Index, ID: d.Ref.ID, Routing: d.Ref.Routing,
			Fence: document.Newer, Version: m.least(doc), Body: doc.Source, MarkField: m.Field,
		}
	case d.Kind == Ghost:
		fix := document.Op{
			Action: document.Delete, Index: d.Ref.Index, ID: d.Ref.ID, Routing: d.Ref.Routing,
			Fence: document.Unchanged, Revision: doc.Revision,
		}
		if !m.ForgetDeleted && mark.Sequence != "" {
			mark.Deleted = time.Now().UTC().Format(time.RFC3339)
			fix.Action, fix.Body = document.Put, docrules.WithMark([]byte("{}"), m.Field, mark)
		}
		return fix
	case !doc.Found:
		return *op
	}
	fix := *op
	mark.Sequence = cmp.Or(mark.Sequence, op.Sequence)
	fix.Body = docrules.WithMark(op.Body, m.Field, mark)
	if least := m.least(doc); doc.Version < least {
		fix.Fence, fix.Version = document.Newer, least // whatever was written since has that, too
		return fix
	}
	fix.Fence, fix.Version, fix.Revision = document.Unchanged, 0, doc.Revision
	return fix
}
