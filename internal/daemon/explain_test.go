package daemon

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/streamtest"
)

func TestExplained(t *testing.T) {
	stream := &poller.StreamError{Stream: poller.Stream{Table: "orders"}, Action: "dynamodb:DescribeTable", Err: errors.New("it is invalid."), Do: "Look."}
	err := explained(fmt.Errorf("start: %w", stream))
	if !strings.HasSuffix(err.Error(), "dynamodb:DescribeTable: it is invalid. Look.") || !errors.Is(err, stream) {
		t.Errorf("%v", err)
	}
	denied := func() *poller.StreamError {
		return &poller.StreamError{Err: &smithy.GenericAPIError{Code: "UnrecognizedClientException", Message: "no."}, Do: "Allow the action"}
	}
	if err := explained(errors.Join(denied(), denied())); strings.Count(err.Error(), "The credentials are not accepted: check") != 2 || strings.Contains(err.Error(), "Allow") {
		t.Errorf("%v", err)
	}
	if explained(nil) != nil {
		t.Error("an error of none")
	}
}

// Credentials can be invalid at the start, or expire later. The daemon says what to do,
// in the same words for both.
func TestCredentialsThatDoNotWork(t *testing.T) {
	noAWS(t)
	svc := streamtest.NewService(t)
	svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	args := []string{"--table", "orders", "--start", "TRIM_HORIZON", "--listen", "127.0.0.1:0", "--grace", "1s",
		"--state", filepath.Join(t.TempDir(), "state.db"), "--endpoint-dynamodb", svc.URL()}

	remove := svc.Fail(streamtest.Fault{Op: "DescribeTable", Error: "UnrecognizedClientException"})
	c := startChild(t, "echo", nil, args...)
	if code := c.exit(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	const first = "UnrecognizedClientException: "
	if out := c.output(); !strings.Contains(out, first) || !strings.Contains(out, "he credentials are not accepted: check AWS_PROFILE") ||
		strings.Contains(out, "..") || strings.Contains(out, "RequestID") || strings.Contains(out, "Allow the action") {
		t.Errorf("at the start:\n%s", out)
	}
	remove()

	c = startChild(t, "echo", nil, args...)
	c.until("shard started", 1)
	svc.Fail(streamtest.Fault{Op: "GetRecords", Error: "ExpiredTokenException"})
	const hint = "the credentials have expired: renew them, such as by aws sso login"
	c.until(hint, 1)
	if code, body := c.ask("GET", "/readyz"); code != 503 || !strings.Contains(body, hint) || strings.Contains(body, "RequestID") {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if _, body := c.ask("GET", "/"); strings.Contains(body, "RequestID") {
		t.Errorf("status:\n%s", body)
	}
	c.signal(syscall.SIGTERM)
	c.exit()
}
