package warehouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/sinks/sqs"
)

// Connect returns the routes on their tables, on the queue of WAREHOUSE_QUEUE and
// the cluster of WAREHOUSE_OPENSEARCH, as run.App wants them.
func Connect(prefix string) func(context.Context, run.Setup) (sluice.Matcher, error) {
	return func(_ context.Context, s run.Setup) (sluice.Matcher, error) {
		name := s.Env("WAREHOUSE_QUEUE")
		if name == "" {
			return nil, errors.New("WAREHOUSE_QUEUE is not set; want the URL or the name of the queue that is told of builds")
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
		s.Check("tables", func(ctx context.Context) error { return store.Check(ctx, All(prefix)...) })
		s.Check("WAREHOUSE_QUEUE", queue.Check, "announce")
		index := cmp.Or(s.Env("WAREHOUSE_INDEX_PREFIX"), DefaultIndexPrefix)
		marks := client.Indices().Marks(projection.DefaultMark, false)
		marks.MustExist = true // CreateIndexes maps the fields, too
		s.Check("opensearch", func(ctx context.Context) error { return CheckIndexes(ctx, client, marks, index) }, "index packages", "index builds")
		return NewRouter(Deps{
			Store: store, Send: queue.Send, Prefix: prefix,
			Write: marks.Writer(documents.Write), IndexPrefix: index,
		})
	}
}

// Cluster returns a client of the cluster of WAREHOUSE_OPENSEARCH. With
// WAREHOUSE_OPENSEARCH_SERVICE requests are signed by cfg.
func Cluster(env func(string) string, cfg aws.Config) (*opensearch.Client, error) {
	c := opensearch.Connection{CAFile: env("WAREHOUSE_OPENSEARCH_CA"), Service: env("WAREHOUSE_OPENSEARCH_SERVICE")}
	if urls := cmp.Or(env("WAREHOUSE_OPENSEARCH"), env("SLUICE_ENDPOINT_OPENSEARCH")); urls != "" {
		c.URLs = strings.Split(urls, ",")
	}
	if c.Service != "" {
		c.AWS = &cfg
	}
	client, err := opensearch.Connect(c)
	if err != nil {
		return nil, fmt.Errorf("WAREHOUSE_OPENSEARCH, WAREHOUSE_OPENSEARCH_CA, WAREHOUSE_OPENSEARCH_SERVICE: %w", err)
	}
	return client, nil
}
