package document

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Error says why a document was not written. [sluice.Permanent] around it means
// that no retry can succeed.
type Error struct {
	Action Action
	Ref    Ref
	// IndexTemplate is Op.IndexTemplate.
	IndexTemplate string
	Version       int64
	Fence         Fence
	Status        int    // HTTP status of the item or of the whole request; 0 without a response
	Type          string // such as mapper_parsing_exception; may be empty
	Reason        string // in the service's words; may quote the document
	Err           error  // without a readable response
}

// NewError returns the error of op.
func NewError(op Op, status int, typ, reason string) *Error {
	return &Error{Action: op.Action, Ref: op.Ref(), IndexTemplate: op.IndexTemplate, Version: op.Version, Fence: op.Fence, Status: status, Type: typ, Reason: reason}
}

// IndexLabel names the index in metrics and logs: the template, else the name.
func (e *Error) IndexLabel() string { return cmp.Or(e.IndexTemplate, e.Ref.Index) }

// quotes are the texts after which a reason quotes a document.
var quotes = []string{" Preview of field's value", " The prefix of the first immense term", "unable to convert [", "unable to parse date [",
	" field value: [", " against source: ", ` input string: "`}

// Error returns the index and the failure. It omits the document's id, and what
// Reason quotes of the document: errors are logged, and ids contain key values.
// Details has both.
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

// Details returns the fields that a dead letter keeps beside the error's text.
func (e *Error) Details() map[string]string {
	d := map[string]string{"action": e.Action.String(), "index": e.Ref.Index, "id": e.Ref.ID}
	if e.Fence != NoFence {
		d["version"], d["version_type"] = strconv.FormatInt(e.Version, 10), e.Fence.String()
	}
	if e.Status != 0 {
		d["status"] = strconv.Itoa(e.Status)
	}
	for name, v := range map[string]string{"routing": e.Ref.Routing, "type": e.Type, "reason": e.Reason} {
		if v != "" {
			d[name] = v
		}
	}
	return d
}
