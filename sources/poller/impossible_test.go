package poller

import (
	"io"
	"net/http"
	"testing"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sluicehq/sluice/internal/awserror"
)

// Only an answer that can be read says that a call is not there: one that was cut
// off may have been a throttle.
func TestImpossible(t *testing.T) {
	answer := func(status int, err error) error {
		return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err}
	}
	cut := &smithy.DeserializationError{Err: io.ErrUnexpectedEOF}
	code := func(code string) error { return &smithy.GenericAPIError{Code: code} }
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{answer(400, cut), false},
		{answer(400, code("UnknownOperationException")), true},
		{answer(400, code("ValidationException")), true},
		{answer(400, code("AccessDeniedException")), true},
		{answer(400, code("ThrottlingException")), false},
		{answer(400, code("ExpiredTokenException")), false},
		{answer(404, cut), true}, // of a server that has no such call
		{answer(403, cut), true},
		{answer(408, cut), false},
		{answer(500, cut), false},
		{io.ErrUnexpectedEOF, false},
	} {
		if got := impossible(tt.err); got != tt.want {
			t.Errorf("%v: %v", tt.err, got)
		}
	}
	// An answer of STS is none of the streams.
	for _, c := range []string{"ValidationError", "Throttling", "AccessDenied", "ResourceNotFoundException", "TrimmedDataAccessException"} {
		err := &awserror.CredentialsError{What: "aws.assumeRole: cannot assume role r", Err: answer(400, code(c))}
		if impossible(err) || classify(err) != transient {
			t.Errorf("%v: impossible %v, %v", err, impossible(err), classify(err))
		}
	}
}
