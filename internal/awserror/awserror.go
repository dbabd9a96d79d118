// Package awserror classifies errors of AWS calls: whether the same call may
// succeed later, and what a person can do.
package awserror

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Meaning is the meaning of an error.
type Meaning uint8

const (
	// The same call may succeed soon: see [Meaning.Passes].

	Lost      Meaning = iota // the request, or its answer: the call may be done
	Failed                   // the service: the call may be done
	Clashed                  // not done, because of another call, or of a clock that is corrected now
	Throttled                // not done, for load

	// It will not.

	NoCredentials // no credentials to sign with
	NotAccepted   // the credentials are not
	Denied        // a permission lacks
	BadKey        // the KMS key of a table or queue cannot be used
	Missing       // no such table, index or queue
	Invalid       // the request is impossible
	Other         // as its code says
)

// Passes reports whether the same call may succeed soon.
func (m Meaning) Passes() bool { return m <= Throttled }

// codes are error codes without the "Exception" at their end. What throttles is
// [retry.DefaultThrottleErrorCodes]. The others are from
//   - https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
//   - https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/CommonErrors.html
//   - https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
//   - https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
var codes = map[string]Meaning{
	"InternalError":         Failed,
	"InternalFailure":       Failed,
	"InternalServerError":   Failed,
	"RequestAborted":        Failed,
	"RequestTimeout":        Failed,
	"ServiceUnavailable":    Failed,
	"TransactionInProgress": Failed, // the SDK calls it throttling; it is the same transaction, under way

	"ReplicatedWriteConflict": Clashed,
	"RequestExpired":          Clashed, // of the clock, as the two below
	"RequestInTheFuture":      Clashed,
	"RequestTimeTooSkewed":    Clashed,
	"TransactionConflict":     Clashed,

	"OverLimit": Throttled,

	"AuthFailure":                NotAccepted,
	"ExpiredToken":               NotAccepted,
	"IncompleteSignature":        NotAccepted,
	"InvalidAccessKeyId":         NotAccepted,
	"InvalidClientTokenId":       NotAccepted,
	"InvalidSecurity":            NotAccepted,
	"InvalidSignature":           NotAccepted, // or the clock: see Of
	"MissingAuthenticationToken": NotAccepted,
	"SignatureDoesNotMatch":      NotAccepted,
	"UnrecognizedClient":         NotAccepted,

	"NotAuthorized": Denied,

	"NonExistentQueue":  Missing,
	"QueueDoesNotExist": Missing,
	"ResourceNotFound":  Missing,
	"TableNotFound":     Missing,

	"IdempotentParameterMismatch": Invalid,
	"Serialization":               Invalid,
	"Validation":                  Invalid,
}

// OfCode is Of for a code alone, such as that of one entry of a batch. The older
// query protocol of SQS has prefixes: AWS.SimpleQueueService.OverLimit.
func OfCode(code string) Meaning {
	code = withoutNamespace(code)
	short := strings.TrimSuffix(code[strings.LastIndexByte(code, '.')+1:], "Exception")
	_, throttles := retry.DefaultThrottleErrorCodes[code]
	m, known := codes[short]
	switch {
	case strings.Contains(code, "AccessDenied"): // KmsAccessDenied, too
		return Denied
	case known:
		return m
	case throttles, strings.Contains(code, "Throttl"): // KmsThrottled, KMS.ThrottlingException
		return Throttled
	case strings.HasPrefix(code, "KMS"), strings.HasPrefix(code, "Kms"):
		return BadKey
	}
	return Other
}

// Of says what err means. It says Other of nil.
func Of(err error) Meaning {
	if err == nil {
		return Other
	}
	if c := (*CredentialsError)(nil); errors.As(err, &c) {
		switch m := Of(c.Err); {
		case m == Denied: // which is about the action of the call, and may be harmless
			return NotAccepted
		case m == Lost && !errors.As(c.Err, new(*smithy.OperationError)) && !errors.Is(c.Err, context.DeadlineExceeded): // of no call
			return NoCredentials
		default:
			return m
		}
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		switch text := err.Error(); {
		case errors.As(err, new(smithy.InvalidParamsError)), errors.As(err, new(*smithy.SerializationError)):
			return Invalid
		case strings.Contains(text, "get credentials"), strings.Contains(text, "retrieve credentials"), strings.Contains(text, "get identity"):
			return NoCredentials
		}
		return Lost
	}
	code, status := Code(err), Status(err)
	m := OfCode(code)
	switch {
	case m == NotAccepted && (strings.Contains(err.Error(), "expired") || strings.Contains(err.Error(), "not yet current")) && strings.Contains(code, "Signature"):
		return Clashed // the client has learnt the difference of the clocks from the answer
	case status == http.StatusTooManyRequests:
		return Throttled
	case status >= 500 && m > Throttled:
		return Failed
	case m != Other:
	case status == http.StatusRequestEntityTooLarge:
		return Invalid
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return NotAccepted
	}
	return m
}

// Code is the code of err, "" without one.
func Code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return withoutNamespace(api.ErrorCode())
	}
	return ""
}

// withoutNamespace makes QueueDoesNotExist of com.amazonaws.sqs#QueueDoesNotExist,
// as services have it on the wire.
func withoutNamespace(code string) string { return code[strings.LastIndexByte(code, '#')+1:] }

// Status is the HTTP status of the answer, 0 when there was none.
func Status(err error) int {
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return response.HTTPStatusCode()
	}
	return 0
}
