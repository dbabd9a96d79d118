// Package streamsapi calls DynamoDB Streams with the SDK's client, whose
// decoding of GetRecords answers is replaced: the body comes out as bytes, for
// sluice.DecodeGetRecords. Signing, endpoints and typed errors stay the SDK's.
package streamsapi

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluicehq/sluice/internal/awsclient"
)

// idleConns is how many connections to the service wait for their next call:
// hundreds of shards are polled at once, and each new connection costs a TLS
// handshake.
const idleConns = 256

// Client is the SDK's client, with its own GetRecords. It never repeats a call.
// The SDK's retries share one budget among all shards: one throttled shard would
// slow down the others, and the caller would not see failures.
type Client struct {
	*dynamodbstreams.Client
}

// New returns a client for the endpoint and credentials of cfg.
func New(cfg aws.Config) *Client {
	return &Client{dynamodbstreams.NewFromConfig(Tuned(cfg))}
}

// Tuned returns cfg with connections kept for many shards; see
// [awsclient.Tuned].
func Tuned(cfg aws.Config) aws.Config { return awsclient.Tuned(cfg, idleConns) }
