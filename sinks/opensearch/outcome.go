package opensearch

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/document"
)

// failure is why a write was not done, by the last try.
type failure struct {
	status int // 0: there was no answer
	typ    string
	reason string
	err    error         // what is known beside
	after  time.Duration // the answer asks to wait so long
}

// of returns the error of op.
func (f failure) of(op *document.Op) *document.Error {
	e := document.NewError(*op, f.status, f.typ, f.reason)
	e.Err = f.err
	return e
}

// ofLoad reports whether a refusal is for load: 429, a full queue of a thread
// pool, indexing pressure, a circuit breaker, which older versions answer with
// 503, or a model of an ingest pipeline that is throttled. Any other 503 is of a
// shard or a cluster that is not there. A blocked index may have 429 as well,
// since its disk is full; fewer requests do not help it.
func ofLoad(status int, typ, reason string) bool {
	switch {
	case strings.Contains(typ, "cluster_block"):
		return false
	case strings.Contains(typ, "rejected_execution"), strings.Contains(typ, "circuit_breaking"):
		return true
	}
	return status == http.StatusTooManyRequests || ofThrottledModel(typ, reason)
}

// marked is sluice.Overloaded for err of a failure that is a refusal for load,
// inside sluice.RetryAfter if the answer says how long to wait; any other is as
// it was.
func (f failure) marked(err error) error {
	if !ofLoad(f.status, f.typ, f.reason) {
		return err
	}
	err = sluice.Overloaded(err)
	if f.after > 0 {
		return sluice.RetryAfter(f.after, err)
	}
	return err
}

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

// judge says what the answer for one operation means. The status is what
// counts; some services leave out the error (F090).
func judge(op *document.Op, r failure) outcome {
	switch {
	case ofLoad(r.status, r.typ, r.reason):
		return busy
	case strings.Contains(r.typ, "cluster_block"):
		return passing // an index is read-only while its disk is full, or it moves
	case ofCluster(r.status, r.typ, r.reason):
		return refused
	}
	switch s := r.status; {
	case s >= 200 && s < 300:
		return done
	case s == http.StatusConflict && op.Fence != document.NoFence && (r.typ == "" || strings.Contains(r.typ, "version_conflict")):
		return conflict
	case s == http.StatusNotFound && op.Action == document.Delete && r.typ == "":
		return absent
	case s == http.StatusBadRequest, s == http.StatusRequestEntityTooLarge:
		return never
	case s == 0, s == http.StatusConflict, s == http.StatusRequestTimeout, s >= 500:
		return passing
	}
	return refused // no such index, no permission
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
	switch s := status.Status; {
	case ofLoad(s, status.Type, status.Reason):
		return busy
	case strings.Contains(status.Type, "cluster_block"):
		return passing
	case s == http.StatusRequestEntityTooLarge:
		return tooLarge
	case s == http.StatusRequestTimeout, s >= 500:
		return passing
	case ofCluster(s, status.Type, status.Reason):
		return refused
	// One without a type is not of the cluster; an unknown parameter is of the
	// request, and that it names indices is of all requests.
	case s == http.StatusBadRequest && status.Type != "" && !strings.Contains(status.Reason, "unrecognized parameter") && !strings.Contains(status.Reason, explicitIndex):
		return spoiled
	}
	return refused
}

// explicitIndex is how a cluster refuses requests that name indices within.
const explicitIndex = "explicit index in bulk is not allowed"

// failureOf returns what the error of a whole request is for each write in it.
func failureOf(err error) failure {
	var status *StatusError
	if errors.As(err, &status) {
		return failure{status: status.Status, typ: status.Type, reason: status.Reason, err: &requestError{status}, after: status.RetryAfter}
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
