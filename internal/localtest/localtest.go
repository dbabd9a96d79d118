// Package localtest reaches the servers that `make test` starts.
package localtest

import (
	"net/http"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluicehq/sluice/internal/localstack"
)

// DynamoDB returns the configuration for clients of DynamoDB Local.
func DynamoDB(t testing.TB) aws.Config { return config(t, localstack.EnvDynamoDB) }

// SQS returns the configuration for clients of ElasticMQ.
func SQS(t testing.TB) aws.Config { return config(t, localstack.EnvSQS) }

// config returns a client's configuration, whose connections are closed when
// the test ends.
func config(t testing.TB, env string) aws.Config {
	t.Helper()
	endpoint := endpoint(t, env)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return aws.Config{
		Region:       "us-east-1",
		BaseEndpoint: &endpoint,
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient:   &http.Client{Transport: transport},
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
