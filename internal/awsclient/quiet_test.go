package awsclient

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
)

// roundTrips answers every request.
type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) Do(r *http.Request) (*http.Response, error) { return f(r) }

// The SDK's warning about answers without a checksum is dropped. A wrong checksum is
// still logged.
func TestAnswersWithoutAChecksum(t *testing.T) {
	for header, want := range map[string]string{"": "", "17": "expected checksum, 17, "} {
		var log strings.Builder
		cfg := Tuned(aws.Config{
			Region: "us-east-1", Logger: logging.NewStandardLogger(&log),
			HTTPClient: roundTrips(func(*http.Request) (*http.Response, error) {
				h := http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
				if header != "" {
					h.Set("X-Amz-Crc32", header)
				}
				return &http.Response{StatusCode: 400, Header: h, Body: io.NopCloser(strings.NewReader(`{"__type":"ResourceInUseException"}`))}, nil
			}),
		}, 1)
		if _, err := dynamodb.NewFromConfig(cfg).ListTables(t.Context(), nil); err == nil {
			t.Error("no error")
		}
		if got := log.String(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("checksum %q: logged %q, want %q", header, got, want)
		}
	}
}
