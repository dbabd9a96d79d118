package document

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Error says that a document was not written, and why. Whether another try can
// succeed is told by what wraps it: [sluice.Permanent] when none can.
type Error struct {
	Action Action
	Ref    Ref
	// IndexTemplate is that of the Op.
	IndexTemplate string
	Version       int64
	Fence         Fence
	Status        int    // of HTTP, of the item or of the whole request; 0 when there was no answer
	Type          string // such as mapper_parsing_exception; may be empty
	Reason        string // in the service's words; may quote the document
	Err           error  // when there was no answer, or none that could be read
}

// NewError returns the error of op.
func NewError(op Op, status int, typ, reason string) *Error {
	return &Error{Action: op.Action, Ref: op.Ref(), IndexTemplate: op.IndexTemplate, Version: op.Version, Fence: op.Fence, Status: status, Type: typ, Reason: reason}
}

// IndexLabel names the index in metrics and logs: the template, else the name.
func (e *Error) IndexLabel() string { return cmp.Or(e.IndexTemplate, e.Ref.Index) }

// quotes are what reasons have before what they quote of a document.
var quotes = []string{" Preview of field's value", " The prefix of the first immense term", "unable to convert [", "unable to parse date [",
	" field value: [", " against source: ", ` input string: "`}

// Error names the index and the failure. It leaves out the document's id and what
// Reason quotes of the document, because errors are logged and an id is made of key
// values. Details has them.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of a document in %q", e.Action, e.IndexLabel())
	if e.Status != 0 {
		fmt.Fprintf(&b, ": status %d", e.Status)
	}
	for _, s := range []string{e.Type, e.publicReason()} {
		if s != "" {
			b.WriteString(": " + s)
		}
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// publicReason is Reason without values of the item.
func (e *Error) publicReason() string {
	reason := e.Reason
	for _, quote := range quotes {
		reason, _, _ = strings.Cut(reason, quote)
	}
	reason = strings.NewReplacer("["+e.Ref.ID+"]", "[…]", "'"+e.Ref.ID+"'", "'…'").Replace(reason)
	if e.IndexTemplate == "" {
		return reason
	}
	return relabel(reason, e.Ref.Index, e.IndexTemplate)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Details are what a dead letter keeps beside the error's text.
func (e *Error) Details() map[string]string {
	d := map[string]string{"action": e.Action.String(), "index": e.Ref.Index, "id": e.Ref.ID}
	if e.Ref.Routing != "" {
		d["routing"] = e.Ref.Routing
	}
	if e.Fence != NoFence {
		d["version"], d["version_type"] = strconv.FormatInt(e.Version, 10), e.Fence.String()
	}
	if e.Status != 0 {
		d["status"] = strconv.Itoa(e.Status)
	}
	if e.Type != "" {
		d["type"] = e.Type
	}
	if e.Reason != "" {
		d["reason"] = e.Reason
	}
	return d
}
