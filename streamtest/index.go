package streamtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
)

// Index is an in-memory index of documents. It accepts and refuses writes by
// OpenSearch's rules about versions. Use its Write instead of a
// sinks/opensearch.Sink's:
//
//	index := streamtest.NewIndex()
//	p, err := projection.New(index.Write, projection.Options{…})
//
// Every written index exists, with one shard and no mappings. It remembers deleted
// documents until [Index.ForgetDeletes]. The methods are safe for concurrent use.
type Index struct {
	// Writes records all calls of Write, and can fail some: these have no
	// effect.
	Writes Sink[document.Op]

	mu      sync.Mutex
	docs    map[docKey]indexed
	writes  int64 // with an effect
	refused []document.Op
}

type docKey struct{ index, id string }

// indexed is the state of one document.
type indexed struct {
	routing string
	version int64
	seqNo   int64
	deleted bool
	hidden  bool // a tombstone
	source  []byte
}

// NewIndex returns an Index without documents.
func NewIndex() *Index { return &Index{docs: map[docKey]indexed{}} }

// Write writes or deletes a document. It also returns nil if the index has a newer
// version, after a call of op.Refused, or if there is no document to delete. An
// impossible write is a [sluice.Permanent] error that wraps a [*document.Error].
func (x *Index) Write(ctx context.Context, op document.Op) error {
	if err := x.Writes.Send(ctx, op); err != nil {
		return err
	}
	if err := checkOp(op); err != nil {
		return sluice.Permanent(err)
	}
	refusal, err := x.write(op)
	if refusal != nil && op.Refused != nil {
		op.Refused(*refusal)
	}
	return err
}

// write returns the refusal of op by its fence, or nil.
func (x *Index) write(op document.Op) (*document.Refusal, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := docKey{op.Index, op.ID}
	is, known := x.docs[key]
	next := indexed{version: op.Version, seqNo: x.writes, deleted: op.Action == document.Delete}
	late := known && op.Version <= is.version
	refusal := &document.Refusal{Version: is.version}
	switch op.Fence {
	case document.NoFence:
		next.version, late = is.version+1, false
	case document.NewerOrEqual:
		late = known && op.Version < is.version
	case document.Unchanged:
		next.version, late = is.version+1, !known || is.deleted || is.revision() != op.Revision
		refusal.Version = 0 // the service does not report it
	case document.Exact:
		if !late {
			break
		}
		doc := is.doc(op.Index, op.ID)
		mark, err := doc.Mark(op.MarkField)
		if err != nil {
			return nil, document.NewError(op, 409, "", err.Error())
		}
		next.version, late = is.version+1, mark.Sequence >= op.Sequence
		refusal.Doc = doc
		if is.deleted {
			next.version = op.Version | (1<<docrules.TieBits - 1)
			late = next.version < is.version || next.version == is.version && !op.ForgetDeleted
			refusal = &document.Refusal{Deleted: true}
			if late && !op.ForgetDeleted && !docrules.IsTombstone(op) {
				return nil, document.NewError(op, 409, "", "the index remembers a deletion with a greater version")
			}
		}
	}
	if late {
		op.Body = bytes.Clone(op.Body)
		x.refused = append(x.refused, op)
		return refusal, nil
	}
	x.writes++
	if op.Action == document.Put {
		next.routing, next.source = op.Routing, bytes.Clone(op.Body)
	}
	next.hidden = docrules.IsTombstone(op)
	x.docs[key] = next
	return nil, nil
}

// WriteAll is Write for several operations, in order: one error each, or nil when
// all succeed.
func (x *Index) WriteAll(ctx context.Context, ops []document.Op) []error {
	errs := make([]error, len(ops))
	for i, op := range ops {
		errs[i] = x.Write(ctx, op)
	}
	if errors.Join(errs...) == nil {
		return nil
	}
	return errs
}

// Get returns the document at ref, or a Doc that is not Found. An index of one
// shard ignores Routing; the result has the routing of the document's write.
func (x *Index) Get(ref document.Ref) document.Doc {
	x.mu.Lock()
	defer x.mu.Unlock()
	is, known := x.docs[docKey{ref.Index, ref.ID}]
	if !known || is.deleted {
		return document.Doc{Ref: ref}
	}
	return is.doc(ref.Index, ref.ID)
}

// Docs returns the documents of an index, ordered by id, without tombstones of a
// projection by sequence. An alias that hides tombstones shows the same.
func (x *Index) Docs(index string) []document.Doc {
	x.mu.Lock()
	defer x.mu.Unlock()
	var docs []document.Doc
	for key, is := range x.docs {
		if key.index == index && !is.deleted && !is.hidden {
			docs = append(docs, is.doc(key.index, key.id))
		}
	}
	slices.SortFunc(docs, func(a, b document.Doc) int { return cmp.Compare(a.ID, b.ID) })
	return docs
}

func (is indexed) doc(index, id string) document.Doc {
	return document.Doc{
		Ref:   document.Ref{Index: index, ID: id, Routing: is.routing},
		Found: !is.deleted, Version: is.version, Revision: is.revision(), Source: bytes.Clone(is.source),
	}
}

func (is indexed) revision() document.Revision {
	return document.Revision{SeqNo: is.seqNo, PrimaryTerm: 1}
}

// Refused returns the writes without an effect because of their version, in order.
func (x *Index) Refused() []document.Op {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.refused)
}

// ForgetDeletes forgets the versions of deleted documents, like OpenSearch after
// index.gc_deletes (60 s by default). A write of an older version then restores a
// document.
func (x *Index) ForgetDeletes() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, is := range x.docs {
		if is.deleted {
			delete(x.docs, key)
		}
	}
}

// checkOp returns OpenSearch's reason to refuse an Op permanently.
func checkOp(op document.Op) error {
	refuse := func(typ, format string, args ...any) error {
		return document.NewError(op, 400, typ, fmt.Sprintf(format, args...))
	}
	switch {
	case op.Index == "":
		return refuse("action_request_validation_exception", "the index is missing")
	case op.ID == "":
		return refuse("action_request_validation_exception", "the id is missing")
	case len(op.ID) > 512:
		return refuse("action_request_validation_exception", "the id has %d bytes, 512 are allowed", len(op.ID))
	case !utf8.ValidString(op.Index) || !utf8.ValidString(op.ID) || !utf8.ValidString(op.Routing):
		return refuse("action_request_validation_exception", "the index, the id or the routing is no UTF-8")
	case op.Fence > document.Unchanged:
		return refuse("illegal_argument_exception", "unknown fence %v", op.Fence)
	case op.Fence == document.NoFence && op.Version != 0:
		return refuse("illegal_argument_exception", "version %d without a fence", op.Version)
	case op.Version < 0:
		return refuse("action_request_validation_exception", "version %d is negative", op.Version)
	case op.Action == document.Delete:
		return nil
	case op.Action != document.Put:
		return refuse("illegal_argument_exception", "unknown action %v", op.Action)
	}
	d := json.NewDecoder(bytes.NewReader(op.Body))
	d.UseNumber()
	if !bytes.HasPrefix(bytes.TrimLeft(op.Body, " \t\r\n"), []byte{'{'}) {
		return refuse("mapper_parsing_exception", "the body is no JSON object")
	}
	if err := checkBody(d); err != nil {
		return refuse("mapper_parsing_exception", "the body: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return refuse("mapper_parsing_exception", "the body goes on after the JSON object")
	}
	return nil
}

// checkBody reads the next value of d. A duplicate field of an object is an error.
func checkBody(d *json.Decoder) error {
	opened, err := d.Token()
	if _, nested := opened.(json.Delim); err != nil || !nested {
		return err
	}
	names := map[string]bool{}
	for d.More() {
		if opened == json.Delim('{') {
			tok, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := tok.(string) // a field's name is a string
			if names[name] {
				return fmt.Errorf("duplicate field %q", name)
			}
			names[name] = true
		}
		if err := checkBody(d); err != nil {
			return err
		}
	}
	_, err = d.Token() // the closing brace or bracket
	return err
}
