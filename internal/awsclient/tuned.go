// Package awsclient configures the SDK's clients for callers that make many small
// requests and control their own retries.
package awsclient

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// Tuned returns cfg with conns connections kept for the next call, unless it
// has an HTTP client of its own, with requests sent whole, without the SDK's
// retries, and without its warnings of answers that have no checksum.
func Tuned(cfg aws.Config, conns int) aws.Config {
	cfg = cfg.Copy()
	if cfg.Logger != nil {
		cfg.Logger = quiet{cfg.Logger}
	}
	cfg.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	if b, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok || cfg.HTTPClient == nil {
		if b == nil {
			b = awshttp.NewBuildableClient()
		}
		cfg.HTTPClient = b.WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns = max(t.MaxIdleConns, conns)
			t.MaxIdleConnsPerHost = max(t.MaxIdleConnsPerHost, conns)
		})
	}
	cfg.HTTPClient = WholeRequests(cfg.HTTPClient)
	return cfg
}
