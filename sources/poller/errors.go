package poller

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/sluicehq/sluice/internal/awserror"
)

// noStartError lists the streams that have neither a stored position nor a start.
// It wraps state.ErrNoStart.
type noStartError struct {
	Streams []string // as the user named them
	Name    string   // how the user sets Start: Options.StartName
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
	Action string // call to the service, such as dynamodb:DescribeTable
	Do     string // advice
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

// kind is the reaction that an error calls for.
type kind uint8

const (
	transient kind = iota // try again, backing off
	throttled             // try again, less often
	expired               // get a new iterator
	trimmed               // the position is older than the stream
	notFound              // no such shard, stream or table
	refused               // credentials or permissions: retry slowly
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

// classify classifies an error of the service. Unknown errors are transient: a
// reader never gives up.
func classify(err error) kind {
	var api smithy.APIError
	if errors.As(err, &api) {
		if k, ok := kinds[api.ErrorCode()]; ok {
			return k
		}
	}
	switch awserror.Status(err) {
	case http.StatusTooManyRequests:
		return throttled
	case http.StatusUnauthorized, http.StatusForbidden:
		return refused
	}
	return transient
}

// busy reports whether err comes from a reachable service that may succeed later.
func busy(err error) bool {
	return err != nil && (classify(err) == throttled || awserror.Status(err)/100 == 5)
}

// impossible reports whether err says that a call is not allowed or not available,
// and that a retry cannot help. Rejected credentials may be renewed, so they do
// not count.
func impossible(err error) bool {
	var api smithy.APIError
	switch classify(err) {
	case throttled:
		return false
	case refused:
		return !errors.As(err, &api) || api.ErrorCode() == "AccessDeniedException"
	}
	switch status := awserror.Status(err); status {
	case http.StatusBadRequest: // also the status of throttling: a truncated response does not say which
		return errors.As(err, &api)
	default:
		return status/100 == 4 && status != http.StatusRequestTimeout
	}
}
