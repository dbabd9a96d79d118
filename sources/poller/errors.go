package poller

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// noStartError says that streams have neither a stored position nor a start.
// It wraps state.ErrNoStart.
type noStartError struct {
	Streams []string // as they were named
	Name    string   // how Start is given: Options.StartName
	Err     error
}

func (e *noStartError) Error() string {
	return fmt.Sprintf("poller: %s: no stored position and no start given. "+
		"If the stream was read before, restore the state file or its path first: its position is lost without it. "+
		"Else write one of\n  %s %-12s handle everything that the stream still holds (up to 24 hours)\n  %s %-12s handle only what is written from now on",
		strings.Join(e.Streams, ", "), e.Name, TrimHorizon, e.Name, Latest)
}

func (e *noStartError) Unwrap() error { return e.Err }

// StreamError says why a stream could not be started.
type StreamError struct {
	Stream Stream
	Action string // what was asked of the service, such as dynamodb:DescribeTable
	Do     string // what to do about it
	Err    error
}

func (e *StreamError) Error() string {
	msg := fmt.Sprintf("poller: %v", e.Stream)
	if e.Action != "" {
		msg += ": " + e.Action
	}
	msg += fmt.Sprintf(": %v", e.Err)
	if e.Do != "" {
		msg += ". " + e.Do
	}
	return msg
}

func (e *StreamError) Unwrap() error { return e.Err }

// kind is what an error of a call asks of the caller.
type kind uint8

const (
	transient kind = iota // try again, backing off
	throttled             // try again, and less often
	expired               // get a new iterator
	trimmed               // the position is older than the stream
	notFound              // no such shard, stream or table
	refused               // credentials or permissions: try again slowly
	invalid               // the request itself: get a new iterator
)

var kindNames = [...]string{"transient", "throttled", "expired", "trimmed", "not found", "refused", "invalid"}

func (k kind) String() string { return kindNames[k] }

var kinds = map[string]kind{
	"ExpiredIteratorException":   expired,
	"TrimmedDataAccessException": trimmed,
	"ResourceNotFoundException":  notFound,

	"LimitExceededException":                 throttled,
	"ProvisionedThroughputExceededException": throttled,
	"RequestLimitExceeded":                   throttled,
	"ThrottlingException":                    throttled,

	"AccessDeniedException":               refused,
	"ExpiredTokenException":               refused,
	"IncompleteSignatureException":        refused,
	"InvalidSignatureException":           refused,
	"MissingAuthenticationTokenException": refused,
	"UnrecognizedClientException":         refused,

	"ValidationException": invalid,
}

// classify sorts an error of the service. What it does not know is transient:
// a reader never gives up.
func classify(err error) kind {
	var api smithy.APIError
	if errors.As(err, &api) {
		if k, ok := kinds[api.ErrorCode()]; ok {
			return k
		}
	}
	switch httpStatus(err) {
	case http.StatusTooManyRequests:
		return throttled
	case http.StatusUnauthorized, http.StatusForbidden:
		return refused
	}
	return transient
}

// httpStatus returns the HTTP status of the answer, or 0 when there was none.
func httpStatus(err error) int {
	var resp *smithyhttp.ResponseError
	if errors.As(err, &resp) {
		return resp.HTTPStatusCode()
	}
	return 0
}

// busy reports whether err is an answer of a service that is there, and may give
// a better one later.
func busy(err error) bool {
	return err != nil && (classify(err) == throttled || httpStatus(err)/100 == 5)
}

// impossible reports whether err says that a call is not allowed or not there,
// and not only now: credentials that the service does not take may be renewed.
func impossible(err error) bool {
	var api smithy.APIError
	switch classify(err) {
	case throttled:
		return false
	case refused:
		return !errors.As(err, &api) || api.ErrorCode() == "AccessDeniedException"
	}
	switch status := httpStatus(err); status {
	case http.StatusBadRequest: // which throttling has, too: of an answer that was cut off nobody knows
		return errors.As(err, &api)
	default:
		return status/100 == 4 && status != http.StatusRequestTimeout
	}
}
