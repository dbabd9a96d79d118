package kit

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/sinks/sqs"
)

// AWS returns the configuration of the environment, which signs requests to
// OpenSearch, and the one of DynamoDB. The SDK logs nothing: its errors are returned.
func AWS(ctx context.Context, env func(string) string) (plain, db aws.Config, err error) {
	if plain, err = config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{})); err != nil {
		return plain, plain, fmt.Errorf("AWS configuration: %w", err)
	}
	db = plain
	if url := env("SLUICE_ENDPOINT_DYNAMODB"); url != "" {
		db.BaseEndpoint = &url
	}
	return plain, db, nil
}

// Queue connects the queue that a variable names, for these routes. what says what
// queue that is.
func Queue(s run.Setup, variable, what string, routes ...string) (*sqs.Queue, error) {
	if s.Env(variable) == "" {
		return nil, fmt.Errorf("%s is not set; want the URL or the name of the queue %s", variable, what)
	}
	q, err := sqs.New(s.AWS("sqs"), s.Env(variable), sqs.Options{Metrics: s.Metrics, Logger: s.Logger})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	s.Check(variable, q.Check, routes...)
	return q, nil
}

// StandardQueue is Queue for messages that wait before they are received.
func StandardQueue(s run.Setup, variable, what string, routes ...string) (*sqs.Queue, error) {
	if name := s.Env(variable); strings.HasSuffix(name, ".fifo") {
		return nil, fmt.Errorf("%s=%s is a FIFO queue, which cannot delay a message: want a standard queue", variable, name)
	}
	return Queue(s, variable, what, routes...)
}

// Message is a message with its dedupeKey as an attribute.
func Message(body []byte, dedupeKey string) sluice.Message {
	return sluice.Message{Body: string(body), Attributes: map[string]sluice.MessageAttribute{"dedupeKey": {Value: dedupeKey}}}
}

// Cluster connects the cluster that the variable <name>_OPENSEARCH names. With
// <name>_OPENSEARCH_SERVICE requests are signed by cfg.
func Cluster(env func(string) string, name string, cfg aws.Config) (*opensearch.Client, error) {
	name += "_OPENSEARCH"
	c := opensearch.Connection{URLs: URLs(env, name), CAFile: env(name + "_CA"), Service: env(name + "_SERVICE")}
	if c.Service != "" {
		c.AWS = &cfg
	}
	client, err := opensearch.Connect(c)
	if err != nil {
		return nil, fmt.Errorf("%s, %[1]s_CA, %[1]s_SERVICE: %w", name, err)
	}
	return client, nil
}

// URLs are those of the cluster that a variable names.
func URLs(env func(string) string, variable string) []string {
	if urls := cmp.Or(env(variable), env("SLUICE_ENDPOINT_OPENSEARCH")); urls != "" {
		return strings.Split(urls, ",")
	}
	return nil // the client's default
}

// Documents returns the sink of a cluster. Under Lambda a write ends before the
// invocation does: a call that the deadline cuts off says nothing of its record.
func Documents(s run.Setup, client *opensearch.Client) (*opensearch.Sink, error) {
	var timeout time.Duration // the sink's default
	if s.Lambda {
		timeout = 5 * time.Second
	}
	return opensearch.New(client, opensearch.Options{Timeout: timeout, Metrics: s.Metrics})
}

// Store connects the tables.
func Store(s run.Setup) (*dynamodb.Store, error) {
	return dynamodb.New(s.AWS("dynamodb"), dynamodb.Options{Metrics: s.Metrics})
}
