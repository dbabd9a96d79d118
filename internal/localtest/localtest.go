// Package localtest reaches the servers that `make test` starts.
package localtest

import (
	"crypto/rand"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluicehq/sluice/internal/localstack"
)

// What make aws sets: EnvPrefix is what every name begins with, and EnvAWS is not
// empty when the servers are those of AWS.
const (
	EnvPrefix = "SLUICE_TEST_PREFIX"
	EnvAWS    = "SLUICE_TEST_AWS"
)

// Name returns a name for a table, a queue or an index, which no other test has.
func Name(kind string) string {
	return os.Getenv(EnvPrefix) + kind + "-" + strings.ToLower(rand.Text())
}

// DynamoDB returns the configuration for clients of DynamoDB Local.
func DynamoDB(t testing.TB) aws.Config { return config(t, localstack.EnvDynamoDB) }

// OwnDynamoDB starts a DynamoDB Local that the test has to itself: until its end
// [DynamoDB], here and in processes that it starts, leads there. It takes two
// seconds, and is for tests
//
//   - of more than a few hundred writes: DynamoDB Local looks for a stream's
//     first record among the records of all streams, at every write to a table
//     with a stream and at every read of one, so that what a test leaves behind
//     makes all later ones slow;
//   - that care for what it says of streams: it numbers the records of all tables
//     together, and calls an iterator of an empty shard trimmed once another
//     table was written to.
//
// AWS does neither: with [EnvAWS] it is DynamoDB.
func OwnDynamoDB(t *testing.T) aws.Config {
	t.Helper()
	cfg := DynamoDB(t) // fails the test outside of make test
	if os.Getenv(EnvAWS) != "" {
		return cfg
	}
	t.Setenv(localstack.EnvDynamoDB, "")
	stack, err := localstack.Start(t.Context(), localstack.Options{NoSQS: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stack.Stop)
	t.Setenv(localstack.EnvDynamoDB, stack.DynamoDB)
	return DynamoDB(t)
}

// SQS returns the configuration for clients of ElasticMQ.
func SQS(t testing.TB) aws.Config { return config(t, localstack.EnvSQS) }

// config returns a client's configuration, whose connections are closed when
// the test ends.
func config(t testing.TB, env string) aws.Config {
	t.Helper()
	endpoint := endpoint(t, env)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	attempts := 0 // the SDK's default
	if os.Getenv(EnvAWS) != "" {
		attempts = 10 // it throttles
	}
	return aws.Config{
		Region:           "us-east-1",
		BaseEndpoint:     &endpoint,
		Credentials:      credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient:       &http.Client{Transport: transport},
		RetryMaxAttempts: attempts,
	}
}

// endpoint fails the test when there is no server: a skipped test is not a
// passed one.
func endpoint(t testing.TB, env string) string {
	t.Helper()
	endpoint := os.Getenv(env)
	if endpoint == "" {
		t.Fatalf("%s is not set: run make test", env)
	}
	return endpoint
}
