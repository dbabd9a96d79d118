package awserror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// failure is an error as the SDK returns it.
func failure(status int, code, message string) error {
	return &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "PutItem", Err: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err:      &smithy.GenericAPIError{Code: code, Message: message},
	}}
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Meaning
	}{
		{io.ErrUnexpectedEOF, Lost},
		{context.DeadlineExceeded, Lost},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, Lost},
		{errors.New("get identity: get credentials: failed to refresh cached credentials"), NoCredentials},
		{&smithy.SerializationError{Err: io.EOF}, Invalid},

		{failure(500, "InternalServerError", ""), Failed},
		{failure(503, "Novel", ""), Failed},
		{failure(500, "KMSInternalException", ""), Failed},
		{failure(400, "TransactionInProgressException", ""), Failed},
		{failure(400, "RequestTimeoutException", ""), Failed},

		{failure(400, "TransactionConflictException", ""), Clashed},
		{failure(400, "ReplicatedWriteConflictException", ""), Clashed},
		{failure(400, "InvalidSignatureException", "Signature expired: 2026 is now earlier than"), Clashed},
		{failure(403, "InvalidSignatureException", "Signature not yet current: 2026"), Clashed},
		{failure(403, "SignatureDoesNotMatch", "Signature expired: 2026"), Clashed},

		// The client's retries end: for their number, their quota, or the time.
		// Only the last hides what the try before was refused for.
		{&retry.MaxAttemptsError{Attempt: 3, Err: failure(400, "ThrottlingException", "")}, Throttled},
		{errors.Join(failure(400, "ThrottlingException", ""), ratelimit.QuotaExceededError{}), Throttled},
		{&aws.RequestCanceledError{Err: context.DeadlineExceeded}, Lost},
		{&smithy.CanceledError{Err: context.DeadlineExceeded}, Lost},

		{failure(400, "ProvisionedThroughputExceededException", ""), Throttled},
		{failure(400, "ThrottlingException", ""), Throttled},
		{failure(400, "RequestLimitExceeded", ""), Throttled},
		{failure(400, "LimitExceededException", ""), Throttled},
		{failure(403, "RequestThrottled", ""), Throttled}, // which status SQS's query protocol has for it
		{failure(400, "KmsThrottled", ""), Throttled},
		{failure(400, "KMS.ThrottlingException", ""), Throttled},
		{failure(403, "AWS.SimpleQueueService.OverLimit", ""), Throttled},
		{failure(503, "ThrottlingException", ""), Throttled},
		{failure(429, "Novel", ""), Throttled},

		{failure(400, "InvalidSignatureException", "does not match"), NotAccepted},
		{failure(400, "UnrecognizedClientException", ""), NotAccepted},
		{failure(400, "ExpiredTokenException", "The security token included in the request is expired"), NotAccepted},
		{failure(403, "InvalidClientTokenId", ""), NotAccepted},
		{failure(403, "Novel", ""), NotAccepted},
		{failure(400, "AccessDeniedException", ""), Denied},
		{failure(400, "KmsAccessDenied", ""), Denied},
		{failure(400, "KmsDisabled", ""), BadKey},
		{failure(400, "KMS.NotFoundException", ""), BadKey},
		{failure(400, "ResourceNotFoundException", ""), Missing},
		{failure(400, "AWS.SimpleQueueService.NonExistentQueue", ""), Missing},
		{failure(400, "QueueDoesNotExist", ""), Missing},
		{failure(400, "com.amazonaws.sqs#QueueDoesNotExist", ""), Missing},
		{failure(400, "com.amazonaws.sqs#KmsDisabled", ""), BadKey},

		{failure(400, "ValidationException", ""), Invalid},
		{failure(400, "SerializationException", ""), Invalid},
		{failure(413, "Novel", ""), Invalid},
		{failure(400, "ConditionalCheckFailedException", ""), Other},
		{failure(400, "TransactionCanceledException", ""), Other},
		{failure(400, "Novel", ""), Other},
	} {
		if got := Of(fmt.Errorf("wrapped: %w", c.err)); got != c.want {
			t.Errorf("%v means %d, want %d", c.err, got, c.want)
		}
	}
}

func TestHint(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{failure(400, "ResourceNotFoundException", ""), "correct its name or URL"},
		{failure(400, "AccessDeniedException", ""), "the permission sqs:SendMessage on the queue"},
		{failure(400, "UnrecognizedClientException", ""), "AWS_PROFILE"},
		{failure(400, "ExpiredTokenException", ""), "have expired: renew them, such as by aws sso login"},
		{failure(400, "KmsDisabled", ""), "the KMS key of the queue"},
		{errors.New("get identity: none"), "there are no credentials"},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, "cannot be reached"},
		{context.DeadlineExceeded, ""},
		{failure(400, "ValidationException", ""), ""},
	} {
		if got := Hint(c.err, "sqs:SendMessage", "queue", "name or URL"); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%v: %q", c.err, got)
		}
	}
}

func TestPlain(t *testing.T) {
	const http = "https response error StatusCode: 400, RequestID: 1F, "
	const unsent = `operation error DynamoDB: CreateTable, exceeded maximum number of attempts, 3, https response error StatusCode: 0, RequestID: , request send failed, Post "http://127.0.0.1:1/": dial tcp 127.0.0.1:1: connect: connection refused`
	for _, c := range []struct{ text, want string }{
		{"refused", "refused"},
		{"wait... and see", "wait... and see"},
		{"is invalid.. Allow it", "is invalid. Allow it"},
		{"shard a: operation error DynamoDB Streams: GetRecords, " + http + "api error Novel: no", "shard a: DynamoDB Streams GetRecords: Novel: no"},
		{"operation error DynamoDB: DescribeTable, " + http + "ResourceNotFoundException: no table", "DynamoDB DescribeTable: ResourceNotFoundException: no table"},
		{"operation error SQS: SendMessage, exceeded maximum number of attempts, 3, " + http + "api error Novel: no", "SQS SendMessage: Novel: no"},
		{"operation error DynamoDB: PutItem, " + http + "api error ExpiredTokenException: The token is expired.", "DynamoDB PutItem: ExpiredTokenException: The token is expired: " + expired},
		{"The " + expired[4:] + ": operation error DynamoDB: PutItem, " + http + "api error ExpiredTokenException: no", "The " + expired[4:] + ": DynamoDB PutItem: ExpiredTokenException: no"},
		{"open ..: is a directory; cd .. first", "open ..: is a directory; cd .. first"},
		{"SQS SendMessage: canceled, context deadline exceeded", "SQS SendMessage: no answer in time"},
		{"creating table t: " + unsent, "creating table t: DynamoDB CreateTable at http://127.0.0.1:1: " + unreached + ": dial tcp 127.0.0.1:1: connect: connection refused"},
		{"at http://127.0.0.1:1: " + unreached + ": " + unsent, "at http://127.0.0.1:1: " + unreached + ": DynamoDB CreateTable: dial tcp 127.0.0.1:1: connect: connection refused"},
		{"at last: " + unsent + ". Is the service running?", "at last: DynamoDB CreateTable: dial tcp 127.0.0.1:1: connect: connection refused. Is the service running?"},
		{"operation error DynamoDB: GetItem, get identity: get credentials: failed to refresh", "DynamoDB GetItem: no credentials: failed to refresh: " + noCredentials},
	} {
		if got := Plain(c.text); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
}
