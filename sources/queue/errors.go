package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/sluicehq/sluice/internal/awserror"
)

// queueError says why a queue cannot be consumed.
type queueError struct {
	text string
	err  error
}

func (e *queueError) Error() string { return e.text }
func (e *queueError) Unwrap() error { return e.err }

// entryError is SQS's error for one entry of a batch. It is a smithy.APIError.
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

// needsPerson reports whether err stays until somebody acts. Unknown errors are
// temporary: a consumer never gives up.
func needsPerson(err error) bool {
	switch awserror.Of(err) {
	case awserror.Missing, awserror.Denied, awserror.NotAccepted, awserror.BadKey:
		return true
	}
	return false
}

// isGone reports whether a receipt handle is no longer valid. For a batch entry,
// SQS blames the sender, with several codes: InvalidParameterValue means an
// expired handle of a FIFO queue.
func isGone(err error) bool {
	for _, code := range []string{"ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidIdFormat"} {
		if strings.Contains(awserror.Code(err), code) {
			return true
		}
	}
	entry, ok := errors.AsType[*entryError](err)
	return ok && entry.fault && !needsPerson(err) && awserror.Of(err) != awserror.Throttled
}

// explain adds the place of a failed call, and advice for common mistakes.
func (s *source) explain(call string, err error) *queueError {
	hint := awserror.Hint(err, "sqs:"+call, "queue", "name or URL")
	if hint == "" && errors.Is(err, context.DeadlineExceeded) {
		hint = "the endpoint did not answer in time: is it right, and is the service running?"
	}
	text := fmt.Sprintf("queue %q %s: sqs:%s: %v", s.name, s.where, call, err)
	if hint != "" {
		text = strings.TrimSuffix(text, ".") + ". " + strings.ToUpper(hint[:1]) + hint[1:]
	}
	return &queueError{text, err}
}
