package audit

import (
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
)

// Kind says how a document is not as it should be.
type Kind uint8

const (
	Missing   Kind = iota + 1 // an item has no document
	Stale                     // the document is older than its item, and has another body
	Different                 // it is as old as its item, or of unknown age, and has another body
	Ghost                     // no item has this document
	Ahead                     // the document has a higher version than its item
	Unfenced                  // the document's version is too low: an older change would be written over it
	Failed                    // the item cannot be projected; nothing is known about its documents
)

// String returns the kind in one lower-case word.
func (k Kind) String() string {
	return [...]string{
		Missing: "missing", Stale: "stale", Different: "different", Ghost: "ghost", Ahead: "ahead", Unfenced: "unfenced", Failed: "failed",
	}[k]
}

// Drift is a document that is not as it should be.
type Drift struct {
	Kind  Kind
	Ref   document.Ref // empty of Failed
	Table string       // empty of a Ghost that no item could be named for
	Key   sluice.Item  // of the item; absent of such a Ghost

	// Want is the version of the item, Have that of the document; each is 0 if
	// absent or unknown.
	Want, Have int64

	// Path is where the two bodies part first, such as "prices[2].amount"; empty
	// when that is not what differs. It names members and holds no values.
	Path string

	Repaired bool
	Err      error // why it was not repaired, or of Failed, not projected; else nil
}

// String says what differs in a line. It names keys, and holds nothing else of
// the item.
func (d Drift) String() string {
	s := d.Kind.String()
	if d.Kind == Failed {
		return fmt.Sprintf("%s: item %s of table %s: %v", s, d.Key.Raw(), d.Table, d.Err)
	}
	s += fmt.Sprintf(" %s/%s", d.Ref.Index, d.Ref.ID)
	switch {
	case d.Kind == Stale || d.Kind == Ahead:
		s += fmt.Sprintf(": version %d, the item has %d", d.Have, d.Want)
	case d.Path != "":
		s += ": at " + d.Path
	}
	switch {
	case d.Repaired:
		s += " (repaired)"
	case d.Err != nil:
		s += fmt.Sprintf(" (not repaired: %v)", d.Err)
	}
	return s
}

// count counts a drift.
func (r *Result) count(d Drift) {
	*[...]*int64{
		Missing: &r.Missing, Stale: &r.Stale, Different: &r.Different, Ghost: &r.Ghosts, Ahead: &r.Ahead, Unfenced: &r.Unfenced, Failed: &r.Failed,
	}[d.Kind]++
	switch {
	case d.Kind == Failed: // it is no drift
	case d.Repaired:
		r.Repaired++
	case d.Err != nil:
		r.Refused++
	}
}

// judge compares an item's document with the existing one; 0 is agreement. want is
// nil if the item is absent or has no such document.
func judge(want *document.Op, doc document.Doc) (kind Kind, path string) {
	if want == nil || want.Action != document.Put {
		if doc.Found {
			return Ghost, ""
		}
		return 0, ""
	}
	if !doc.Found {
		return Missing, ""
	}
	versions := want.Fence == document.Newer || want.Fence == document.NewerOrEqual
	if versions && doc.Version > want.Version {
		return Ahead, ""
	}
	path, same := docrules.Compare(want.Body, doc.Source, want.MarkField)
	switch {
	case same: // a projection writes no change that leaves the document as it was
		return 0, ""
	case versions && doc.Version < want.Version:
		return Stale, path
	}
	return Different, path
}
