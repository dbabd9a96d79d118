package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/backoff"
)

// class says what an error of a request means for its next try.
type class uint8

const (
	passing   class = iota // the network, the service: worth another try
	throttled              // there was not enough throughput: likewise, later
	refused                // the table, the permission, a condition: not for another try, and no fault of what was written
	permanent              // what was asked for can never be
)

// classify says what an error of the SDK means. Conditions that do not hold and
// cancelled transactions are refused: what they mean is in their details.
func classify(err error) class {
	var api smithy.APIError
	if !errors.As(err, &api) {
		var invalid smithy.InvalidParamsError
		var serialization *smithy.SerializationError
		switch {
		case errors.As(err, &invalid), errors.As(err, &serialization):
			return permanent
		case isOfCredentials(err):
			return refused
		}
		return passing // the request or the answer was lost
	}
	switch code := api.ErrorCode(); {
	case code == "ProvisionedThroughputExceededException", code == "RequestLimitExceeded", code == "LimitExceededException",
		strings.Contains(code, "Throttl"), statusOf(err) == http.StatusTooManyRequests:
		return throttled
	case statusOf(err) >= 500,
		code == "InternalServerError", code == "ServiceUnavailable", code == "RequestTimeout", code == "RequestTimeoutException",
		code == "TransactionConflictException", code == "TransactionInProgressException", code == "ReplicatedWriteConflictException":
		return passing
	case code == "InvalidSignatureException" && (strings.Contains(err.Error(), "expired") || strings.Contains(err.Error(), "not yet current")):
		return passing // the client has learnt the difference of the clocks from the answer
	case code == "ValidationException", code == "SerializationException", code == "IdempotentParameterMismatchException",
		statusOf(err) == http.StatusRequestEntityTooLarge:
		return permanent
	}
	return refused
}

// mayBeDone reports whether a write that failed with err may have been done: its
// answer was lost, or tells nothing.
func mayBeDone(err error) bool {
	if err == nil || classify(err) != passing {
		return false
	}
	switch codeOf(err) {
	case "TransactionConflictException", "ReplicatedWriteConflictException", "InvalidSignatureException":
		return false
	}
	var network *net.OpError
	return !errors.As(err, &network) || network.Op != "dial"
}

func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func statusOf(err error) int {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		return response.HTTPStatusCode()
	}
	return 0
}

// isOfCredentials reports whether there are none to sign with.
func isOfCredentials(err error) bool {
	text := err.Error()
	return strings.Contains(text, "get credentials") || strings.Contains(text, "retrieve credentials") || strings.Contains(text, "get identity")
}

// retry repeats try, with backoff, while its error may pass, up to Attempts
// times. The error is that of the last try, as it came.
func (s *Store) retry(ctx context.Context, try func(context.Context) error) error {
	return s.retryUpTo(ctx, s.opt.Attempts, try)
}

func (s *Store) retryUpTo(ctx context.Context, attempts int, try func(context.Context) error) error {
	for n := 1; ; n++ {
		err := try(ctx)
		if err == nil || classify(err) > throttled || n >= attempts || !s.pause(ctx, n) {
			return err
		}
	}
}

// try gives one request a third of Timeout: one whose connection has died
// silently leaves time for others.
func (s *Store) try(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout/3)
	defer cancel()
	return request(ctx)
}

// pause waits before try n+1 as long as backoff with full jitter says. It
// returns false, at once, when ctx would end before.
func (s *Store) pause(ctx context.Context, n int) bool {
	return backoff.Within(ctx, backoff.Full(s.opt.Backoff, s.opt.Backoff<<10, n))
}

// explain says of an error of the SDK which call of which table failed where
// and, for what people get wrong, what to do. It is sluice.Permanent when
// classify says so, and sluice.Overloaded when it is a refusal for load. table may be empty.
func (s *Store) explain(call, table string, err error) error {
	if err == nil {
		return nil
	}
	at := call + " " + s.where
	if hint := hintFor(call, err); hint != "" {
		at += ": " + hint
	}
	err = fmt.Errorf("%s: %w", at, marked(err))
	if table != "" {
		err = &tableError{table, err}
	} else {
		err = fmt.Errorf("dynamodb: %w", err)
	}
	if classify(err) == permanent {
		return sluice.Permanent(err)
	}
	return err
}

func hintFor(call string, err error) string {
	code := codeOf(err)
	var unreachable net.Error
	switch {
	case code == "ResourceNotFoundException":
		return "there is no such table or index for this account and region: create it, or correct its name or the region"
	case slices.Contains([]string{"UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException", "InvalidAccessKeyId", "ExpiredToken", "ExpiredTokenException", "MissingAuthenticationTokenException", "IncompleteSignatureException"}, code):
		return "the credentials are not accepted: check AWS_PROFILE, AWS_ACCESS_KEY_ID or the role"
	case strings.Contains(code, "AccessDenied"):
		return "the credentials lack the permission dynamodb:" + call + " on the table or index, or its key"
	case isOfCredentials(err):
		return "there are no credentials: set AWS_PROFILE or AWS_ACCESS_KEY_ID, or run with a role"
	case code == "ItemCollectionSizeLimitExceededException":
		return "the items of this partition, with those of local indexes, have reached 10 GB"
	case errors.As(err, &unreachable) && code == "" && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled):
		return "the endpoint cannot be reached: is it right, and is the service running?"
	}
	return ""
}

// tableError says which table an error is about.
type tableError struct {
	table string
	err   error
}

func (e *tableError) Error() string { return fmt.Sprintf("dynamodb: table %q: %v", e.table, e.err) }
func (e *tableError) Unwrap() error { return e.err }

// isOfCaller reports whether err is about who asks, and not what for.
func isOfCaller(err error) bool {
	switch codeOf(err) {
	case "": // it was never sent
		return classify(err) != permanent
	case "UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException", "ExpiredToken", "ExpiredTokenException",
		"MissingAuthenticationTokenException", "IncompleteSignatureException":
		return true
	}
	return false
}
