package queue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// QueueError says why a queue could not be consumed from.
type QueueError struct {
	Queue  string // its name
	Where  string // endpoint and Region
	Action string // what was asked of SQS, such as sqs:GetQueueUrl
	Do     string // what to do about it
	Err    error
}

func (e *QueueError) Error() string {
	msg := fmt.Sprintf("queue %q %s: %s: %v", e.Queue, e.Where, e.Action, e.Err)
	if e.Do != "" {
		msg = strings.TrimSuffix(msg, ".") + ". " + e.Do
	}
	return msg
}

func (e *QueueError) Unwrap() error { return e.Err }

// entryError is what SQS says of one entry of a batch.
type entryError struct {
	code, message string
	fault         bool // the sender's
}

func (e *entryError) Error() string { return e.code + ": " + e.message }

// kind is what an error of a call asks of the caller.
type kind uint8

const (
	transient kind = iota // try again, backing off
	throttled             // try again, and less often
	refused               // credentials or permissions: try again slowly
	missing               // no such queue
	gone                  // the receipt handle is worth nothing any more
)

// classify sorts an error of the service. What it does not know is transient:
// a consumer never gives up.
func classify(err error) kind {
	code := codeOf(err)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(code, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("QueueDoesNotExist", "NonExistentQueue"):
		return missing
	case has("Throttl", "OverLimit", "TooManyRequests", "LimitExceeded"):
		return throttled
	case has("AccessDenied", "ExpiredToken", "InvalidClientTokenId", "UnrecognizedClient", "SignatureDoesNotMatch", "InvalidSignature",
		"IncompleteSignature", "InvalidAccessKeyId", "MissingAuthenticationToken", "AuthFailure", "InvalidSecurity", "Kms", "KMS"):
		return refused
	case has("ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidIdFormat"):
		return gone
	}
	var entry *entryError
	if errors.As(err, &entry) {
		if entry.fault { // of a FIFO queue InvalidParameterValue: the handle has expired
			return gone
		}
		return transient
	}
	var resp *smithyhttp.ResponseError
	if errors.As(err, &resp) {
		switch resp.HTTPStatusCode() {
		case http.StatusTooManyRequests:
			return throttled
		case http.StatusUnauthorized, http.StatusForbidden:
			return refused
		}
	}
	return transient
}

func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	var entry *entryError
	if errors.As(err, &entry) {
		return entry.code
	}
	return ""
}

// explain says of a call where it failed and, for what people get wrong, what
// to do.
func (s *source) explain(call string, err error) *QueueError {
	e := &QueueError{Queue: s.name, Where: s.where, Action: "sqs:" + call, Err: err}
	var unreachable net.Error
	text := err.Error()
	switch kind := classify(err); {
	case kind == missing:
		e.Do = "There is no such queue for this account and Region: create it, or correct its name or URL"
	case kind == refused && strings.Contains(codeOf(err), "AccessDenied"):
		e.Do = "Allow sqs:" + call + " on the queue, and the use of its key if it has one"
	case kind == refused:
		e.Do = "The credentials are not accepted: check AWS_PROFILE, AWS_ACCESS_KEY_ID or the role"
	case strings.Contains(text, "get credentials") || strings.Contains(text, "retrieve credentials") || strings.Contains(text, "get identity"):
		e.Do = "There are no credentials: set AWS_PROFILE or AWS_ACCESS_KEY_ID, or run with a role"
	case codeOf(err) == "" && (errors.As(err, &unreachable) || errors.Is(err, context.DeadlineExceeded)):
		e.Do = "The endpoint cannot be reached: is it right, and is the service running?"
	}
	return e
}
