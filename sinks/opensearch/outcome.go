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

// outcome is the meaning of a response for a write or a request.
type outcome uint8

const (
	done     outcome = iota // written, or deleted
	conflict                // the index has a newer state: success
	absent                  // no document to delete: success
	passing                 // temporary
	busy                    // temporary, because the cluster is overloaded
	refused                 // no retry in this commit, and not the document's fault
	never                   // permanent
	tooLarge                // of a request: a smaller one may succeed
	spoiled                 // of a request: one of its operations may be the cause
)

// said is the cluster's answer for one operation or a whole request.
type said struct {
	status int // 0: none
	typ    string
	reason string
}

// refusals are errors with the same meaning for an operation and a request,
// whatever the status alone would mean. The first match counts.
//
// The texts are those of OpenSearch 1 to 3 and of its plugin ml-commons, whose
// models ingest pipelines call. Only the beginning of a reason counts, which is
// OpenSearch's own. The rest may quote the document, and a bad document must not
// look like an outage.
var refusals = []struct {
	status int                      // 0: any
	typ    string                   // part of the type
	reason func(reason string) bool // nil: any
	means  outcome
}{
	// An index is read-only while its disk is full, or while it moves. Its 429
	// is not a refusal for load: fewer requests do not help.
	{0, "cluster_block", nil, passing},

	// Load. Older versions respond with 503. Any other 503 is a missing shard
	// or cluster.
	{0, "rejected_execution", nil, busy},
	{0, "circuit_breaking", nil, busy},
	{http.StatusTooManyRequests, "", nil, busy},
	{0, "remote_connector_throttling_exception", nil, busy}, // the service behind a model
	{0, "status_exception", throttledModel, busy},

	// OpenSearch responds with 400 to every internal IllegalArgumentException,
	// even if the document is not at fault. Such writes succeed once an index,
	// a pipeline or a model is repaired, so they must not be parked.
	{http.StatusBadRequest, "index_closed_exception", nil, refused},
	{http.StatusBadRequest, "index_not_found_exception", nil, refused},
	{http.StatusBadRequest, "illegal_argument_exception", begins("no write index is defined for alias ["), refused},
	{http.StatusBadRequest, "illegal_argument_exception", begins("Document ID is not supported in create/index operation request"), refused},
	{http.StatusBadRequest, "illegal_argument_exception", begins("pipeline with id ["), refused},
	{http.StatusBadRequest, "illegal_argument_exception", begins("only write ops with an op_type of create are allowed in data streams"), refused},
	{http.StatusBadRequest, "illegal_argument_exception", begins("Rejecting mapping update to ["), refused},           // documents of another type, in old versions
	{http.StatusBadRequest, "validation_exception", begins("Validation Failed: 1: this action would add ["), refused}, // too many shards for the cluster
	// A model is not deployed, or not on this node yet; or no node runs models.
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

// throttledModel reports whether the service behind a model is throttled.
// SageMaker then responds with status 400 and no message, which ml-commons passes
// on.
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

// refusal looks up s in refusals; done if it is not there.
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

// judge interprets the response for one operation. The status decides, because
// some services omit the error.
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

// judgeRequest interprets the error of a whole request for its operations.
func judgeRequest(err error) outcome {
	var status *StatusError
	switch {
	case errors.As(err, new(*signError)):
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
	// An error without a type is not the cluster's. An unknown parameter
	// concerns the request, and a refusal of index names concerns all requests.
	case s == http.StatusBadRequest && status.Type != "" && !unknownParameter(status.Reason) && !strings.HasPrefix(status.Reason, explicitIndex):
		return spoiled
	}
	return refused
}

// unknownParameter reports whether the cluster refuses a parameter of the path:
// request [/_bulk] contains unrecognized parameter: [x].
func unknownParameter(reason string) bool {
	request, rest, _ := strings.Cut(reason, "] ")
	return strings.HasPrefix(request, "request [/") && strings.HasPrefix(rest, "contains unrecognized parameter")
}

// explicitIndex is the error of a cluster that refuses index names in requests.
const explicitIndex = "explicit index in bulk is not allowed"

// failure is the reason of the last failed try of a write.
type failure struct {
	said
	err   error         // further information
	after time.Duration // wait that the response asks for
	late  bool          // the time of the writes ended before the response

	by document.Refusal // of an Exact write
}

// refused returns why the Fence refused the write.
func (f failure) refused() document.Refusal {
	if f.by.Version == 0 {
		f.by.Version = versionThere(f.reason)
	}
	return f.by
}

// of returns the document.Error of op.
func (f failure) of(op *document.Op) *document.Error {
	e := document.NewError(*op, f.status, f.typ, f.reason)
	if e.Err = f.err; op.IndexTemplate != "" && f.status != 0 { // without a status no index is at fault
		e.Err = &templateError{f.err}
	}
	return e
}

// templateError appends the template of an index to an error. The index name
// contains values of an item, which must not be logged.
type templateError struct{ err error } // or nil

func (e *templateError) Error() string {
	const note = "the index is named by this template; sluice explain and the details of a dead letter have its name"
	if e.err == nil {
		return note
	}
	return e.err.Error() + ": " + note
}

func (e *templateError) Unwrap() error { return e.err }

// marked wraps err in sluice.Overloaded if the failure is a refusal for load,
// inside sluice.RetryAfter if the response gives a delay. It returns any other err
// unchanged.
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

// failureOf converts the error of a whole request to the failure of each of its
// writes, whose time is that of ctx.
func failureOf(ctx context.Context, err error) failure {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return failure{said: status.said(), err: &requestError{status}, after: status.RetryAfter}
	}
	return failure{err: err, late: ctx.Err() != nil}
}

// requestError adds the request to a StatusError, without the status and reason
// that the document.Error has.
type requestError struct{ status *StatusError }

func (e *requestError) Error() string {
	text := e.status.Method + " " + e.status.Path + " at " + e.status.Host
	if hint := e.status.hint(); hint != "" {
		text += ": " + hint
	}
	return text
}

func (e *requestError) Unwrap() error { return e.status }

// overloaded reports whether a try ended in a way that shows overload.
func overloaded(err error) bool {
	return err != nil && (judgeRequest(err) == busy || errors.Is(err, context.DeadlineExceeded))
}

// versionThere returns the document's version in the reason of a conflict; 0 if
// there is none.
func versionThere(reason string) int64 {
	const before = "current version ["
	i := strings.LastIndex(reason, before) // an id precedes it
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
