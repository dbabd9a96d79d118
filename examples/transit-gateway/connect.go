package transitgateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/sinks/sqs"
)

// Connect returns the routes on their tables, on the queue of TGW_QUEUE and the
// cluster of TGW_OPENSEARCH, as run.App wants them.
func Connect(prefix string) func(context.Context, run.Setup) (sluice.Matcher, error) {
	return func(_ context.Context, s run.Setup) (sluice.Matcher, error) {
		name := s.Env("TGW_QUEUE")
		if name == "" {
			return nil, errors.New("TGW_QUEUE is not set; want the URL or the name of the queue of the janitor, a standard one")
		}
		if strings.HasSuffix(name, ".fifo") {
			return nil, fmt.Errorf("TGW_QUEUE=%s is a FIFO queue, which cannot delay a message: want a standard queue", name)
		}
		queue, err := sqs.New(s.AWS("sqs"), name, sqs.Options{Metrics: s.Metrics, Logger: s.Logger})
		if err != nil {
			return nil, err
		}
		store, err := dynamodb.New(s.AWS("dynamodb"), dynamodb.Options{Metrics: s.Metrics})
		if err != nil {
			return nil, err
		}
		client, err := Cluster(s.Env, s.AWS("opensearch"))
		if err != nil {
			return nil, err
		}
		var timeout time.Duration // the sink's default
		if s.Lambda {
			timeout = 5 * time.Second // an end before the invocation's: a call that is cut off then says nothing of its record
		}
		documents, err := opensearch.New(client, opensearch.Options{Timeout: timeout, Metrics: s.Metrics})
		if err != nil {
			return nil, err
		}
		s.Check("TGW_QUEUE", queue.Check, "claim", "janitor")
		s.Check("tables", func(ctx context.Context) error { return store.Check(ctx, Tables(prefix)...) })
		s.Check("opensearch", func(ctx context.Context) error { return CheckIndex(ctx, client, Index(s.Env)) }, "document")
		if !s.Lambda && len(s.Queues) == 0 {
			s.Logger.Warn("no queue is consumed: names without a gateway are left to another process; --queue (SLUICE_QUEUES) names one")
		}
		return NewRouter(Deps{
			Store: store, Prefix: prefix, Write: documents.Write, Index: Index(s.Env), Send: queue.Send, Logger: s.Logger,
		})
	}
}

// Cluster returns a client of the cluster of TGW_OPENSEARCH. With
// TGW_OPENSEARCH_SERVICE requests are signed by cfg.
func Cluster(env func(string) string, cfg aws.Config) (*opensearch.Client, error) {
	var c opensearch.Connection
	if urls := cmp.Or(env("TGW_OPENSEARCH"), env("SLUICE_ENDPOINT_OPENSEARCH")); urls != "" {
		c.URLs = strings.Split(urls, ",")
	}
	c.CAFile = env("TGW_OPENSEARCH_CA")
	if c.Service = env("TGW_OPENSEARCH_SERVICE"); c.Service != "" {
		c.AWS = &cfg
	}
	client, err := opensearch.Connect(c)
	if err != nil {
		return nil, fmt.Errorf("TGW_OPENSEARCH, TGW_OPENSEARCH_CA, TGW_OPENSEARCH_SERVICE: %w", err)
	}
	return client, nil
}

// Index is the index of TGW_INDEX.
func Index(env func(string) string) string { return cmp.Or(env("TGW_INDEX"), DefaultIndex) }
