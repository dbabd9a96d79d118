package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

func TestErrors(t *testing.T) {
	refusal := func(status int, code string) error {
		return &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: &smithy.GenericAPIError{Code: code},
		}
	}
	for _, c := range []struct {
		err          error
		person, gone bool
	}{
		{io.ErrUnexpectedEOF, false, false},
		{context.DeadlineExceeded, false, false},
		{errors.New("get identity: get credentials: none"), false, false}, // their service may be down
		{refusal(503, "ServiceUnavailable"), false, false},
		{refusal(400, "RequestThrottled"), false, false},
		{refusal(400, "Novel"), false, false},
		{refusal(400, "QueueDoesNotExist"), true, false},
		{refusal(403, "Novel"), true, false},
		{refusal(400, "KmsDisabled"), true, false},
		{refusal(403, "AccessDenied"), true, false},
		{refusal(404, "ReceiptHandleIsInvalid"), false, true},
		{&entryError{"InternalError", "", false}, false, false},
		{&entryError{"InvalidParameterValue", "", true}, false, true},
		{&entryError{"ReceiptHandleIsInvalid", "", true}, false, true},
		{&entryError{"RequestThrottled", "", true}, false, false},
		{&entryError{"KMS.DisabledException", "", true}, true, false},
	} {
		if err := fmt.Errorf("wrapped: %w", c.err); needsPerson(err) != c.person || isGone(err) != c.gone {
			t.Errorf("%v: needs a person %v, is gone %v", err, needsPerson(err), isGone(err))
		}
	}
}

// The error of a service without an answer says so, not only "deadline exceeded".
func TestExplainNoAnswer(t *testing.T) {
	s := &source{name: "jobs", where: "at AWS in region us-east-1"}
	if err := s.explain("ReceiveMessage", context.DeadlineExceeded); !strings.Contains(err.Error(), "The endpoint did not answer in time") {
		t.Error(err)
	}
}
