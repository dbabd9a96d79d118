package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/sluicehq/sluice/internal/awserror"
)

// queueError says why a queue could not be consumed from.
type queueError struct {
	Queue  string // its name
	Where  string // endpoint and Region
	Action string // what was asked of SQS, such as sqs:GetQueueUrl
	Do     string // what to do about it
	Err    error
}

func (e *queueError) Error() string {
	msg := fmt.Sprintf("queue %q %s: %s: %v", e.Queue, e.Where, e.Action, e.Err)
	if e.Do != "" {
		msg = strings.TrimSuffix(msg, ".") + ". " + e.Do
	}
	return msg
}

func (e *queueError) Unwrap() error { return e.Err }

// entryError is what SQS says of one entry of a batch. It is a smithy.APIError.
type entryError struct {
	code, message string
	fault         bool // the sender's
}

func (e *entryError) Error() string        { return e.code + ": " + e.message }
func (e *entryError) ErrorCode() string    { return e.code }
func (e *entryError) ErrorMessage() string { return e.message }

func (e *entryError) ErrorFault() smithy.ErrorFault {
	if e.fault {
		return smithy.FaultClient
	}
	return smithy.FaultServer
}

// needsPerson reports whether err stays until somebody does something about it.
// What is not known passes: a consumer never gives up.
func needsPerson(err error) bool {
	switch awserror.Of(err) {
	case awserror.Missing, awserror.Denied, awserror.NotAccepted, awserror.BadKey:
		return true
	}
	return false
}

// isGone reports whether a receipt handle is worth nothing any more. Of one
// entry, SQS calls that the sender's fault, by several codes: InvalidParameterValue
// is that of an expired handle of a FIFO queue.
func isGone(err error) bool {
	for _, code := range []string{"ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidIdFormat"} {
		if strings.Contains(awserror.Code(err), code) {
			return true
		}
	}
	entry, ok := errors.AsType[*entryError](err)
	return ok && entry.fault && !needsPerson(err) && awserror.Of(err) != awserror.Throttled
}

// explain says of a call where it failed and, for what people get wrong, what
// to do.
func (s *source) explain(call string, err error) *queueError {
	hint := awserror.Hint(err, "sqs:"+call, "queue", "name or URL")
	if hint == "" && errors.Is(err, context.DeadlineExceeded) {
		hint = "the endpoint did not answer in time: is it right, and is the service running?"
	}
	if hint != "" {
		hint = strings.ToUpper(hint[:1]) + hint[1:]
	}
	return &queueError{Queue: s.name, Where: s.where, Action: "sqs:" + call, Do: hint, Err: err}
}
