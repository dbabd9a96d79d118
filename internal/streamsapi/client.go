// Package streamsapi calls DynamoDB Streams with the SDK's client, whose
// decoding of GetRecords answers is replaced: the body comes out as bytes, for
// sluice.DecodeGetRecords. Signing, endpoints and typed errors stay the SDK's.
package streamsapi

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

// idleConns is how many connections to the service wait for their next call:
// hundreds of shards are polled at once, and each new connection costs a TLS
// handshake.
const idleConns = 256

// Client is the SDK's client, and GetRecords beside it. It never repeats a
// call: the SDK's retries share one budget among all shards, so that one
// throttled shard would slow the others, and hide what failed from the caller.
type Client struct {
	*dynamodbstreams.Client
}

// New returns a client for the endpoint and credentials of cfg.
func New(cfg aws.Config) *Client {
	return &Client{dynamodbstreams.NewFromConfig(Tuned(cfg))}
}

// Tuned returns cfg with connections kept for many shards, unless it has an
// HTTP client of its own, with requests sent whole, and without the SDK's
// retries.
func Tuned(cfg aws.Config) aws.Config {
	cfg = cfg.Copy()
	cfg.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	if b, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok || cfg.HTTPClient == nil {
		if b == nil {
			b = awshttp.NewBuildableClient()
		}
		cfg.HTTPClient = b.WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns = max(t.MaxIdleConns, idleConns)
			t.MaxIdleConnsPerHost = max(t.MaxIdleConnsPerHost, idleConns)
		})
	}
	cfg.HTTPClient = WholeRequests(cfg.HTTPClient)
	return cfg
}
