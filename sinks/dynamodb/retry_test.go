package dynamodb

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awserror"
)

// failure is an error as the SDK returns it.
func failure(status int, code, message string) error {
	return &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "PutItem", Err: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err:      &smithy.GenericAPIError{Code: code, Message: message},
	}}
}

func TestRetry(t *testing.T) {
	for _, c := range []struct {
		name  string
		errs  []error // of each try; the last one of all that follow
		tries int
		most  time.Duration
	}{
		{"at once", []error{nil}, 1, 0},
		{"after two", []error{failure(500, "x", ""), failure(400, "ThrottlingException", ""), nil}, 3, 300 * time.Millisecond},
		{"never", []error{io.EOF}, 4, 700 * time.Millisecond},
		{"refused", []error{failure(400, "AccessDeniedException", "")}, 1, 0},
		{"permanent", []error{failure(400, "ValidationException", "")}, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := budgeted(t, Options{Attempts: 4, Backoff: 100 * time.Millisecond})
				start, tries := time.Now(), 0
				err := s.retry(t.Context(), s.opt.Attempts, func(context.Context) error {
					tries++
					return c.errs[min(tries, len(c.errs))-1]
				})
				if want := c.errs[len(c.errs)-1]; err != want || tries != c.tries {
					t.Errorf("%v after %d tries, want %v after %d", err, tries, want, c.tries)
				}
				if took := time.Since(start); took > c.most+time.Millisecond || (took == 0) != (c.most == 0) {
					t.Errorf("took %v, want up to %v", took, c.most)
				}
			})
		})
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := budgeted(t, Options{Attempts: 1 << 30, Backoff: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if err := s.retry(ctx, s.opt.Attempts, func(context.Context) error { return io.EOF }); err != io.EOF || time.Since(start) > time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		start = time.Now()
		if err := s.retry(ctx, s.opt.Attempts, func(context.Context) error { return io.EOF }); err != io.EOF || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestExplain(t *testing.T) {
	s := budgeted(t, Options{})
	for _, c := range []struct {
		err       error
		want      string
		permanent bool
	}{
		{failure(400, "ResourceNotFoundException", "gone"), "there is no such table or index", false},
		{failure(400, "AccessDeniedException", "no"), "dynamodb:PutItem", false},
		{failure(400, "UnrecognizedClientException", "no"), "AWS_PROFILE", false},
		{errors.New("get identity: none"), "there are no credentials", false},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, "cannot be reached", false},
		{failure(400, "ValidationException", "an empty key"), "an empty key", true},
		{failure(500, "InternalServerError", "oops"), "oops", false},
	} {
		err := s.explain("PutItem", "orders", c.err)
		if !strings.HasPrefix(err.Error(), `dynamodb: table "orders": PutItem at AWS in region us-east-1: `) || !strings.Contains(err.Error(), c.want) ||
			sluice.IsPermanent(err) != c.permanent || !errors.Is(err, c.err) {
			t.Errorf("%v (permanent %v)", err, sluice.IsPermanent(err))
		}
	}
	if s.explain("PutItem", "orders", nil) != nil {
		t.Error("an error of none")
	}
}

// countingClient fails every request as a lost connection does.
type countingClient struct{ requests int }

func (c *countingClient) Do(*http.Request) (*http.Response, error) {
	c.requests++
	return nil, io.ErrUnexpectedEOF
}

// The SDK's own retries would multiply ours.
func TestTheClientRepeatsNothing(t *testing.T) {
	var c countingClient
	cfg := aws.Config{Region: "us-east-1", HTTPClient: &c, Credentials: aws.AnonymousCredentials{}, RetryMaxAttempts: 5}
	s, err := New(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.db.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err == nil || c.requests != 1 || awserror.Of(err) != awserror.Lost {
		t.Errorf("%d requests, %v", c.requests, err)
	}
}
