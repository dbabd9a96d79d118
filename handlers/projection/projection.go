package projection

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
)

// Projection keeps the documents of a kind of items. It is safe for concurrent
// use.
type Projection struct {
	write     func(context.Context, document.Op) error
	o         Options
	place     place
	body      *body
	tombstone *body
	scratch   sync.Pool
	names     *indexNames // nil: Index is fixed
	counts    series
}

// New returns a Projection, or an error that names every missing or invalid
// option. write makes the writes, such as Write of a sinks/opensearch.Sink. It
// must not keep the Body of its Op after it returns. It may be nil if you call
// only Project.
func New(write func(context.Context, document.Op) error, o Options) (*Projection, error) {
	if o.Version.kind != bySequence && (o.Mark != "" || o.ForgetDeleted) {
		return nil, errors.New("projection: Mark and ForgetDeleted are options of BySequence")
	}
	o.Mark = cmp.Or(o.Mark, DefaultMark)
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("projection: %w", err)
	}
	if write != nil && o.Version.kind == bySequence && o.Current == nil {
		return nil, errors.New("projection: Current is missing: BySequence writes the item as it is now when a record is redriven or replayed; Store.Current of sinks/dynamodb reads it")
	}
	b, err := o.body()
	if err != nil {
		return nil, fmt.Errorf("projection: %w", err)
	}
	p := &Projection{write: write, o: o, body: b, counts: newSeries(o.Metrics)}
	p.place.index, _ = ParseTemplate(o.Index)
	p.place.id, _ = parseID(o.ID)
	p.place.routing, _ = ParseTemplate(o.Routing)
	p.place.hash = o.HashLongIDs
	if len(p.place.index.parts) > 0 {
		p.names = &indexNames{template: o.Index, most: cmp.Or(o.MaxIndices, defaultMaxIndices), seen: map[string]struct{}{}}
	}
	if len(o.Tombstone) > 0 || o.Version.kind == bySequence && !o.ForgetDeleted {
		p.tombstone = &body{root: &node{}, last: o.Tombstone}
	}
	p.scratch.New = func() any { return &scratch{} }
	return p, nil
}

// scratch is the memory for one record. It is reused.
type scratch struct {
	writer, before, tombstone writer
	text                      []byte
	ops                       [3]document.Op
}

// release returns s for reuse. It keeps no part of a record's page.
func (p *Projection) release(s *scratch) {
	for _, w := range []*writer{&s.writer, &s.before} {
		clear(w.stash[:cap(w.stash)])
		clear(w.flat)
	}
	p.scratch.Put(s)
}

// Handle writes the change of rec. It skips a record that does not change its
// document. It is a [sluice.Handler].
func (p *Projection) Handle(ctx context.Context, rec *sluice.Record) error {
	s := p.scratch.Get().(*scratch)
	s.writer.count = p.o.Dropped != nil || p.counts.dropped != nil
	var ops []document.Op
	var err error
	if p.o.Version.kind == bySequence && outdated(rec) {
		ops, err = p.current(ctx, s, rec)
	} else {
		ops, err = p.ops(s, rec)
	}
	if err == nil && rec.Origin == sluice.Redriven && p.o.Version.kind != bySequence && p.o.Current != nil {
		ops, err = p.lasting(ctx, rec, ops)
	}
	if err == nil {
		if err = p.names.admit(ops); err != nil {
			err = permanent(rec, err)
		}
	}
	if err != nil {
		return err
	}
	if len(ops) == 0 {
		p.counts.unchanged.Add(1, rec.Table)
		p.release(s)
		return sluice.Skip("unchanged")
	}
	for _, field := range s.writer.dropped {
		p.counts.dropped.Add(1, rec.Table)
		if p.o.Dropped != nil {
			p.o.Dropped(rec.Table, field)
		}
	}
	for i, op := range ops {
		switch {
		case p.settles(rec, op):
			err = p.writeSettled(ctx, rec, op)
		case i == 0 && p.watches(rec, op):
			err = p.writeWatched(ctx, rec, op)
		default:
			err = p.write(ctx, op)
		}
		if err != nil {
			return err // a retry repeats all writes, which is safe
		}
		p.counts.written.Add(1, rec.Table, op.Action.String())
	}
	p.release(s)
	return nil
}

// Project returns the writes of Handle in order; none if rec does not change its
// document. The result depends only on rec. Equal records make equal bytes, which
// share no memory with rec.
func (p *Projection) Project(rec *sluice.Record) ([]document.Op, error) {
	s := p.scratch.Get().(*scratch)
	s.writer.count = false
	ops, err := p.ops(s, rec)
	if err != nil || len(ops) == 0 {
		return nil, err
	}
	ops = slices.Clone(ops)
	for i := range ops {
		ops[i].Body = bytes.Clone(ops[i].Body)
	}
	p.release(s)
	return ops, nil
}

// ops returns the writes of rec, in the memory of s.
func (p *Projection) ops(s *scratch, rec *sluice.Record) ([]document.Op, error) {
	s.writer.body, s.before.body, s.tombstone.body = p.body, p.body, p.tombstone
	var ops []document.Op
	var err error
	switch rec.EventName {
	case sluice.Insert, sluice.Modify, sluice.Snapshot:
		ops, err = p.changed(s, rec)
	case sluice.Remove:
		ops, err = p.withdrawn(s, rec)
	default:
		err = errors.New("it is no change of an item")
	}
	if err != nil {
		return nil, permanent(rec, err)
	}
	return ops, nil
}

// changed returns the write of the new image's document. If the document moved, it
// also returns the write for its old place.
func (p *Projection) changed(s *scratch, rec *sluice.Record) ([]document.Op, error) {
	if !rec.New.Exists() {
		return nil, errors.New("it came without its new image: " + viewRemedy)
	}
	if rec.EventName == sluice.Snapshot && p.o.Version.kind == unversioned && !p.o.UnfencedBackfill {
		return nil, errors.New("what a backfill reads may be older than what a record has written, and without a Version nothing tells: take one, or stop the writers and set UnfencedBackfill")
	}
	taken, err := p.takes(rec.New)
	switch {
	case err != nil:
		return nil, err
	case !taken:
		return p.withdrawn(s, rec)
	}
	at, err := p.o.Version.of(rec)
	if err != nil {
		return nil, err
	}
	var ref document.Ref
	from := source{image: rec.New, keys: rec.Keys}
	if ref, s.text, err = p.place.find(s.text, from); err != nil {
		return nil, err
	}
	left, moved, err := p.left(s, rec, ref)
	if err != nil {
		return nil, err
	}
	if err := s.writer.write(from); err != nil {
		return nil, err
	}
	if !moved && p.unchanged(s, rec) {
		return nil, nil
	}
	put := p.put(s, ref, at)
	if !moved {
		return append(s.ops[:0], put), nil
	}
	gone, err := p.gone(s, left, at, rec, source{image: rec.Old, keys: rec.Keys})
	if err != nil {
		return nil, err
	}
	if at.kind == document.NoFence && left.Index == ref.Index && left.ID == ref.ID {
		// With both routings in one shard, they may name one document.
		return append(s.ops[:0], gone, put), nil
	}
	return append(s.ops[:0], put, gone), nil
}

// left returns the old place of a modified item's document, and whether it moved.
func (p *Projection) left(s *scratch, rec *sluice.Record, now document.Ref) (left document.Ref, moved bool, err error) {
	if rec.EventName != sluice.Modify {
		return left, false, nil
	}
	path := p.place.besides(rec.Keys)
	switch {
	case path == "":
		return left, false, nil // an item keeps its keys
	case !rec.Old.Exists():
		return left, false, fmt.Errorf("attribute %q says where the document is, and it came without its old image, which tells where it was: %s", path, viewRemedy)
	}
	left, s.text, err = p.place.find(s.text, source{image: rec.Old, keys: rec.Keys})
	if err != nil {
		return left, false, nil // the old image had no place, and no document
	}
	return left, left != now, nil
}

// unchanged reports whether the old image makes the document that s.writer has
// just written. A record with an unknown predecessor does not tell what the index
// has.
func (p *Projection) unchanged(s *scratch, rec *sluice.Record) bool {
	if rec.EventName != sluice.Modify || rec.Origin != sluice.Live || !rec.Old.Exists() || p.o.WriteUnchanged {
		return false
	}
	if taken, err := p.takes(rec.Old); err != nil || !taken {
		return false // it had no document
	}
	s.before.like = s.writer.out
	err := s.before.write(source{image: rec.Old, keys: rec.Keys})
	return err == nil && !s.before.differ
}

// put returns the write of the document in s.writer.
func (p *Projection) put(s *scratch, ref document.Ref, at fence) document.Op {
	op := p.op(document.Put, ref, at)
	s.writer.mark(op, time.Time{})
	op.Body = s.writer.out
	return op
}

// gone returns the write for a document that has left ref.
func (p *Projection) gone(s *scratch, ref document.Ref, at fence, rec *sluice.Record, from source) (document.Op, error) {
	op := p.op(document.Delete, ref, at)
	if p.tombstone == nil {
		return op, nil
	}
	if err := s.tombstone.write(from); err != nil {
		return op, fmt.Errorf("tombstone: %w", err)
	}
	deleted := rec.Created
	if deleted.IsZero() { // some emulators omit the time
		deleted = time.Now()
	}
	s.tombstone.mark(op, deleted)
	op.Action, op.Body = document.Put, s.tombstone.out
	return op, nil
}

func (p *Projection) op(action document.Action, ref document.Ref, at fence) document.Op {
	op := document.Op{
		Action: action, Index: ref.Index, ID: ref.ID, Routing: ref.Routing,
		Fence: at.kind, Version: at.version, Sequence: at.sequence,
	}
	if p.names != nil {
		op.IndexTemplate = p.names.template
	}
	if at.kind == document.Exact {
		op.MarkField, op.ForgetDeleted = p.o.Mark, p.o.ForgetDeleted
	}
	return op
}
