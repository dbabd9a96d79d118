package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice/document"
)

// maxGet is how many documents one request reads.
const maxGet = 250

// Get reads documents in the order of refs, each with its version, as they are
// now: also what no refresh has made searchable yet. A document that is not
// there is not Found, and neither is one for which the Ref lacks the Routing that
// it was written with. An alias must lead to one index.
//
// An index that is not there is an error: whoever asks for documents by their
// names thinks that it is. Sources are byte for byte what was written.
func (c *Client) Get(ctx context.Context, refs []document.Ref) ([]document.Doc, error) {
	docs := make([]document.Doc, 0, len(refs))
	for len(refs) > 0 {
		chunk := refs[:min(len(refs), maxGet)]
		refs = refs[len(chunk):]
		var err error
		if docs, err = c.get(ctx, docs, chunk); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

type getRef struct {
	Index   string `json:"_index"`
	ID      string `json:"_id"`
	Routing string `json:"routing,omitempty"`
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
	// No filter_path: it has the cluster write sources anew.
	return getBy(ctx, c.read, "/_mget", docs, refs)
}

// getBy appends the documents that one call reads.
func getBy(ctx context.Context, call callFunc, path string, docs []document.Doc, refs []document.Ref) ([]document.Doc, error) {
	var in struct {
		Docs []getRef `json:"docs"`
	}
	for _, ref := range refs {
		in.Docs = append(in.Docs, getRef(ref))
	}
	var out struct{ Docs []gotDoc }
	if err := call(ctx, "POST", path, in, &out); err != nil {
		return nil, err
	}
	if len(out.Docs) != len(refs) {
		return nil, fmt.Errorf("opensearch: POST /_mget: asked for %d documents, the answer holds %d", len(refs), len(out.Docs))
	}
	for i, got := range out.Docs {
		ref := refs[i]
		switch {
		case got.Error != nil:
			e := &StatusError{Method: "POST", Path: "/_mget", Status: statusOf(got.Error.Type), Type: got.Error.Type,
				Reason: got.Error.Reason}
			return nil, e.marked()
		case got.ID != ref.ID:
			return nil, fmt.Errorf("opensearch: POST /_mget: at place %d the answer holds another document than was asked for", i)
		case got.Found && got.Source == nil:
			return nil, errors.New("opensearch: a document has no _source: its index must store it")
		}
		doc := document.Doc{Ref: ref, Found: got.Found}
		if got.Found {
			doc.Version, doc.Source = got.Version, got.Source
			doc.Revision = document.Revision{SeqNo: got.SeqNo, PrimaryTerm: got.PrimaryTerm}
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// statusOf is the status that an error of one document would have had as that
// of a request.
func statusOf(typ string) int {
	switch {
	case typ == "index_not_found_exception":
		return 404
	case said{typ: typ}.refusal() == busy:
		return 429
	}
	return 400
}
