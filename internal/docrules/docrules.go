// Package docrules has what sinks, projections, audits and reindexes of documents agree
// on beyond package document.
package docrules

import (
	"encoding/json"
	"time"

	"github.com/sluicehq/sluice/effect/document"
)

// Writers of an alias learn of a second index by aliases of their own, which are
// called as theirs with a suffix. Package reindex moves them.
const (
	AlsoSuffix    = ".also"    // every write goes to the index behind it, too
	DeletesSuffix = ".deletes" // deletions do
)

// TieBits is the number of last bits in the Version of an Exact write: a write by
// a Revision adds one to the existing version.
const TieBits = 6

// WithMark returns a body, a JSON object, with a mark in a field. It replaces an
// existing mark.
func WithMark(body []byte, field string, m document.Mark) []byte {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(body, &members) != nil {
		return body // the cluster reports the mistake
	}
	text, _ := json.Marshal(m) // two strings
	members[field] = text
	marked, err := json.Marshal(members)
	if err != nil {
		return body
	}
	return marked
}

// IsTombstone reports whether op writes a document that stands for a deleted one.
func IsTombstone(op document.Op) bool {
	mark, err := document.Doc{Found: op.Action == document.Put, Source: op.Body}.Mark(op.MarkField)
	return err == nil && mark.Deleted != ""
}

// LeastKept is the least age at which a tombstone may be deleted: a stream holds a
// record for 24 hours, and a handler may hold it for another hour.
const LeastKept = 25 * time.Hour
