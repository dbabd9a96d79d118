package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
)

// outcome is what an answer means for a write or a request.
type outcome uint8

const (
	done     outcome = iota // written, or deleted
	conflict                // something newer is there: as good
	absent                  // nothing is there to delete: as good
	passing                 // worth another try
	busy                    // likewise, and the cluster has too much to do
	refused                 // not for another try in this commit, and no fault of the document
	never                   // no other try can succeed
	tooLarge                // of a request: smaller ones may pass
	spoiled                 // of a request: an operation in it may be the reason
)

// said is what the cluster says of one operation or of a whole request.
type said struct {
	status int // 0: nothing
	typ    string
	reason string
}

// refusals are what means the same for an operation and for a request, whatever
// its status would mean else. The first that fits counts.
//
// The texts are those of OpenSearch 1 to 3 and of its plugin ml-commons, whose
// models ingest pipelines call. Only the beginning of a reason counts, which is
// OpenSearch's own: what follows may quote names and values of the document, and a
// bad document must not pass for an outage.
var refusals = []struct {
	status int                      // 0: any
	typ    string                   // is in the type
	reason func(reason string) bool // nil: any
	means  outcome
}{
	// An index is read-only while its disk is full, or it moves. Its 429 is none for
	// load: fewer requests do not help it.
	{0, "cluster_block", nil, passing},

	// Load. Older versions answer with 503. Any other 503 is of a shard or a cluster
	// that is not there.
	{0, "rejected_execution", nil, busy},
	{0, "circuit_breaking", nil, busy},
	{http.StatusTooManyRequests, "", nil, busy},
	{0, "remote_connector_throttling_exception", nil, busy}, // the service behind a model
	{0, "status_exception", throttledModel, busy},

	// OpenSearch answers 400 for whatever is an IllegalArgumentException inside, also
	// where the document is not at fault: such writes succeed when an index, a
	// pipeline or a model is mended. To park each would be wrong.
	{http.StatusBadRequest, "index_closed_exception", nil, refused},
	{http.StatusBadRequest, "index_not_found_exception", nil, refused},
	{http.StatusBadRequest, "illegal_argument_exception", begins("no write index is defined for alias ["), refused},
	{http.StatusBadRequest, "illegal_argument_exception", begins("Document ID is not supported in create/index operation request"), refused},
	{http.StatusBadRequest, "illegal_argument_exception", begins("pipeline with id ["), refused},
	{http.StatusBadRequest, "illegal_argument_exception", begins("only write ops with an op_type of create are allowed in data streams"), refused},
	{http.StatusBadRequest, "illegal_argument_exception", begins("Rejecting mapping update to ["), refused},           // documents of another type, of old versions
	{http.StatusBadRequest, "validation_exception", begins("Validation Failed: 1: this action would add ["), refused}, // more shards than the cluster may have
	// A model is not deployed, or not yet on this node; no node runs models.
	{http.StatusBadRequest, "illegal_argument_exception", begins("Model not ready"), refused},
	{http.StatusBadRequest, "illegal_argument_exception", begins("model not deployed"), refused},
	{http.StatusBadRequest, "illegal_argument_exception", begins("Auto deployment disabled for this model"), refused},
	{http.StatusBadRequest, "illegal_argument_exception", begins("no eligible node"), refused},
	{http.StatusBadRequest, "illegal_argument_exception", begins("No eligible node"), refused},
	{http.StatusBadRequest, "status_exception", begins("Local Model is currently disabled"), refused},
	{http.StatusBadRequest, "status_exception", begins("Remote Inference is currently disabled"), refused},
}

func begins(text string) func(string) bool {
	return func(reason string) bool { return strings.HasPrefix(reason, text) }
}

// throttledModel reports whether the service behind a model is throttled. For that
// SageMaker has status 400 and no message, which ml-commons passes on.
func throttledModel(reason string) bool {
	body, remote := strings.CutPrefix(reason, "Error from remote service: ")
	var service struct {
		Type    string          `json:"__type"`
		Message json.RawMessage `json:"message"`
	}
	if !remote || json.Unmarshal([]byte(body), &service) != nil {
		return false
	}
	return service.Type == "ThrottlingException" || strings.HasSuffix(service.Type, "#ThrottlingException") || service.Type == "" && string(service.Message) == "null"
}

// refusal looks s up in refusals; done if it is not there.
func (s said) refusal() outcome {
	if s.status == http.StatusOK || s.status == http.StatusCreated {
		return done
	}
	for _, r := range refusals {
		if (r.status == 0 || r.status == s.status) && strings.Contains(s.typ, r.typ) && (r.reason == nil || r.reason(s.reason)) {
			return r.means
		}
	}
	return done
}

// judge says what the answer for one operation means. The status is what
// counts; some services leave out the error.
func judge(op *document.Op, is said) outcome {
	if o := is.refusal(); o != done {
		return o
	}
	switch s := is.status; {
	case s >= 200 && s < 300:
		return done
	case s == http.StatusConflict && op.Fence != document.NoFence && (is.typ == "" || strings.Contains(is.typ, "version_conflict")):
		return conflict
	case s == http.StatusNotFound && op.Action == document.Delete && is.typ == "":
		return absent
	case s == http.StatusBadRequest, s == http.StatusRequestEntityTooLarge:
		return never
	case s == 0, s == http.StatusConflict, s == http.StatusRequestTimeout, s >= 500:
		return passing
	}
	return refused // no such index, no permission
}

// judgeRequest says what the error of a whole request means for what is in it.
func judgeRequest(err error) outcome {
	var status *StatusError
	var unsigned *signError
	switch {
	case errors.As(err, &unsigned):
		return refused
	case !errors.As(err, &status):
		return passing // the request or the answer was lost
	}
	if o := status.said().refusal(); o != done {
		return o
	}
	switch s := status.Status; {
	case s == http.StatusRequestEntityTooLarge:
		return tooLarge
	case s == http.StatusRequestTimeout, s >= 500:
		return passing
	// One without a type is not of the cluster; an unknown parameter is of the
	// request, and that it names indices is of all requests.
	case s == http.StatusBadRequest && status.Type != "" && !unknownParameter(status.Reason) && !strings.HasPrefix(status.Reason, explicitIndex):
		return spoiled
	}
	return refused
}

// unknownParameter reports whether a cluster does not know a parameter of the path:
// request [/_bulk] contains unrecognized parameter: [x].
func unknownParameter(reason string) bool {
	request, rest, _ := strings.Cut(reason, "] ")
	return strings.HasPrefix(request, "request [/") && strings.HasPrefix(rest, "contains unrecognized parameter")
}

// explicitIndex is how a cluster refuses requests that name indices within.
const explicitIndex = "explicit index in bulk is not allowed"

// failure is why a write was not done, by the last try.
type failure struct {
	said
	err   error         // what is known beside
	after time.Duration // the answer asks to wait so long

	by document.Refusal // that refused an Exact write
}

// refused says why the Fence refused the write.
func (f failure) refused() document.Refusal {
	if f.by.Version == 0 {
		f.by.Version = versionThere(f.reason)
	}
	return f.by
}

// of returns the error of op.
func (f failure) of(op *document.Op) *document.Error {
	e := document.NewError(*op, f.status, f.typ, f.reason)
	if e.Err = f.err; op.IndexTemplate != "" && f.status != 0 { // else no index is at fault
		e.Err = &templateError{f.err}
	}
	return e
}

// templateError ends the text of an error that shows the template of an index. The
// name is made of an item's values, which no log shows.
type templateError struct{ err error } // or nil

func (e *templateError) Error() string {
	const note = "the index is named by this template; sluice explain and the details of a dead letter have its name"
	if e.err == nil {
		return note
	}
	return e.err.Error() + ": " + note
}

func (e *templateError) Unwrap() error { return e.err }

// marked is sluice.Overloaded for err of a failure that is a refusal for load,
// inside sluice.RetryAfter if the answer says how long to wait; any other is as
// it was.
func (f failure) marked(err error) error {
	if f.refusal() != busy {
		return err
	}
	err = sluice.Overloaded(err)
	if f.after > 0 {
		return sluice.RetryAfter(f.after, err)
	}
	return err
}

// failureOf returns what the error of a whole request is for each write in it.
func failureOf(err error) failure {
	var status *StatusError
	if errors.As(err, &status) {
		return failure{said: status.said(), err: &requestError{status}, after: status.RetryAfter}
	}
	return failure{err: err}
}

// requestError says of which request a StatusError is, beside its status and
// reason, which the document.Error has.
type requestError struct{ status *StatusError }

func (e *requestError) Error() string {
	text := e.status.Method + " " + e.status.Path + " at " + e.status.Host
	if hint := e.status.hint(); hint != "" {
		text += ": " + hint
	}
	return text
}

func (e *requestError) Unwrap() error { return e.status }

// overloaded reports whether a try ended as it does when the cluster has too
// much to do.
func overloaded(err error) bool {
	return err != nil && (judgeRequest(err) == busy || errors.Is(err, context.DeadlineExceeded))
}

// versionThere returns the version that the reason of a conflict says is there; 0
// when it says none.
func versionThere(reason string) int64 {
	const before = "current version ["
	i := strings.LastIndex(reason, before) // an id stands in front of it
	if i < 0 {
		return 0
	}
	text, _, _ := strings.Cut(reason[i+len(before):], "]")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
