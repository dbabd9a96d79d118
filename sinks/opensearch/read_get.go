package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice/effect/document"
)

// maxGet is the number of documents that one request reads.
const maxGet = 250

// Get reads the current documents in the order of refs, each with its version. It
// also sees documents before a refresh makes them searchable. A missing document
// is not Found. Neither is a document whose Ref lacks the Routing of its write. An
// alias must have one index.
//
// A missing index is an error, because the caller expects it. Sources are byte for
// byte as written.
func (c *Client) Get(ctx context.Context, refs []document.Ref) ([]document.Doc, error) {
	docs := make([]document.Doc, 0, len(refs))
	for chunk := range slices.Chunk(refs, maxGet) {
		var err error
		if docs, err = c.get(ctx, docs, chunk); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

type getRef struct {
	Index   string   `json:"_index"`
	ID      string   `json:"_id"`
	Routing string   `json:"routing,omitempty"`
	Only    []string `json:"_source,omitempty"` // fields; empty: all
}

func getRefOf(ref document.Ref, only ...string) getRef {
	return getRef{ref.Index, ref.ID, ref.Routing, only}
}

type gotDoc struct {
	ID          string          `json:"_id"`
	Found       bool            `json:"found"`
	Version     int64           `json:"_version"`
	SeqNo       int64           `json:"_seq_no"`
	PrimaryTerm int64           `json:"_primary_term"`
	Source      json.RawMessage `json:"_source"`
	Error       *struct{ Type, Reason string }
}

// callFunc is Client.Call or Client.read.
type callFunc = func(ctx context.Context, method, path string, in, out any) error

func (c *Client) get(ctx context.Context, docs []document.Doc, refs []document.Ref) ([]document.Doc, error) {
	// No filter_path: it makes the cluster rewrite sources.
	asked := make([]getRef, len(refs))
	for i, ref := range refs {
		asked[i] = getRefOf(ref)
	}
	reads, err := multiGet(ctx, c.read, "/_mget", asked)
	if err != nil {
		return nil, err
	}
	for _, r := range reads {
		if r.err != nil {
			return nil, r.err
		}
		docs = append(docs, r.doc)
	}
	return docs, nil
}

// docRead is a document, or the error of its shard or index.
type docRead struct {
	doc document.Doc
	err error
}

// multiGet reads documents in one request, in the order of refs.
func multiGet(ctx context.Context, call callFunc, path string, refs []getRef) ([]docRead, error) {
	in := struct {
		Docs []getRef `json:"docs"`
	}{refs}
	var out struct{ Docs []gotDoc }
	if err := call(ctx, "POST", path, in, &out); err != nil {
		return nil, err
	}
	if len(out.Docs) != len(refs) {
		return nil, fmt.Errorf("opensearch: POST /_mget: asked for %d documents, the answer holds %d", len(refs), len(out.Docs))
	}
	reads := make([]docRead, len(refs))
	for i, got := range out.Docs {
		if got.Error == nil && got.ID != refs[i].ID {
			return nil, fmt.Errorf("opensearch: POST /_mget: at place %d the answer holds another document than was asked for", i)
		}
		reads[i].doc, reads[i].err = got.document(document.Ref{Index: refs[i].Index, ID: refs[i].ID, Routing: refs[i].Routing})
	}
	return reads, nil
}

func (got *gotDoc) document(ref document.Ref) (document.Doc, error) {
	switch {
	case got.Error != nil:
		e := &StatusError{Method: "POST", Path: "/_mget", Status: statusOf(got.Error.Type), Type: got.Error.Type, Reason: got.Error.Reason}
		return document.Doc{}, e.marked()
	case !got.Found:
		return document.Doc{Ref: ref}, nil
	case got.Source == nil:
		return document.Doc{}, errors.New("opensearch: a document has no _source: its index must store it")
	}
	return document.Doc{
		Ref: ref, Found: true, Version: got.Version, Source: got.Source,
		Revision: document.Revision{SeqNo: got.SeqNo, PrimaryTerm: got.PrimaryTerm},
	}, nil
}

// statusOf returns the HTTP status that the error of one document would have as
// the error of a request.
func statusOf(typ string) int {
	switch {
	case typ == "index_not_found_exception":
		return 404
	case said{typ: typ}.refusal() == busy:
		return 429
	}
	return 400
}
