package meadowlark

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/metrics"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/sinks/sqs"
)

// Connection says where Meadowlark's table, indices and queues are.
type Connection struct {
	DynamoDB, SQS, OpenSearch aws.Config               // OpenSearch: to sign requests with
	Tables                    []string                 // the one whose stream is read (default writer.DefaultTable)
	Env                       func(name string) string // MEADOWLARK_…; see the README

	// Check is given the checks of table, template and queues, as run.Setup.Check is;
	// nil: they are not made.
	Check func(sink string, check func(context.Context) error, routes ...string)

	// Timeout of a copy's write with its retries; 0 is the sink's default. In a function
	// it must end before the invocation does: a call that the deadline cuts off says
	// nothing of its record, which is not parked then.
	Timeout time.Duration

	Metrics metrics.Meter // nil: none
	Logger  *slog.Logger  // default slog.Default()
}

// Connect returns Meadowlark's routes on their table, indices and queues.
func Connect(c Connection) (*router.Router, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Check == nil {
		c.Check = func(string, func(context.Context) error, ...string) {}
	}
	d := Deps{Table: writer.DefaultTable, Resources: Resources(), IndexPrefix: c.Env("MEADOWLARK_INDEX_PREFIX"), Logger: c.Logger}
	switch len(c.Tables) {
	case 0:
	case 1:
		d.Table = c.Tables[0]
	default:
		return nil, fmt.Errorf("meadowlark keeps documents and references in one table; want one in --table (SLUICE_TABLES), not %d: %s", len(c.Tables), strings.Join(c.Tables, ", "))
	}
	store, err := dynamodb.New(c.DynamoDB, dynamodb.Options{
		Keys:    map[string][]string{d.Table: {"pk", "sk"}},
		Metrics: c.Metrics,
	})
	if err != nil {
		return nil, err
	}
	d.Store = store
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	sink, err := opensearch.New(client, opensearch.Options{Timeout: c.Timeout, Metrics: c.Metrics})
	if err != nil {
		return nil, err
	}
	d.Write = sink.Write
	d.Metrics = c.Metrics
	d.Dropped = func(table, field string) {
		c.Logger.Warn("a document's own field has a reserved name: it is not in the copy", "table", table, "field", field)
	}
	c.Check("table "+d.Table, func(ctx context.Context) error { return store.Check(ctx, d.Table) })
	c.Check("opensearch", (Indices{Call: client.Call, Prefix: d.IndexPrefix}).Check, "document")
	alerts, err := c.queue("MEADOWLARK_ALERTS", "for alerts about dangling references", "dangling", "look again")
	if err != nil {
		return nil, err
	}
	checks, err := c.queue("MEADOWLARK_CHECKS", "for references that are checked again a minute later", "reference", "look again")
	if err != nil {
		return nil, err
	}
	d.Alert, d.Check = alerts.Send, checks.Send
	return NewRouter(d)
}

// Client connects the cluster.
func (c Connection) Client() (*opensearch.Client, error) {
	o := opensearch.Connection{
		Username: c.Env("MEADOWLARK_OPENSEARCH_USER"), Password: c.Env("MEADOWLARK_OPENSEARCH_PASSWORD"),
		CAFile: c.Env("MEADOWLARK_OPENSEARCH_CA"),
	}
	if urls := cmp.Or(c.Env("MEADOWLARK_OPENSEARCH"), c.Env("SLUICE_ENDPOINT_OPENSEARCH")); urls != "" {
		o.URLs = strings.Split(urls, ",")
	}
	if c.Env("MEADOWLARK_OPENSEARCH_SIGN") != "" {
		o.AWS, o.Service = &c.OpenSearch, c.Env("MEADOWLARK_OPENSEARCH_SIGN")
	}
	client, err := opensearch.Connect(o)
	if err != nil {
		return nil, fmt.Errorf("MEADOWLARK_OPENSEARCH, _USER, _PASSWORD, _CA, _SIGN: %w", err)
	}
	return client, nil
}

// queue connects the queue that a variable names, for these routes.
func (c Connection) queue(variable, what string, routes ...string) (*sqs.Queue, error) {
	name := c.Env(variable)
	switch {
	case name == "":
		return nil, fmt.Errorf("%s is not set: set it to the URL or name of the queue %s", variable, what)
	case strings.HasSuffix(name, ".fifo"):
		return nil, fmt.Errorf("%s=%s is a FIFO queue, which cannot delay a message: want a standard queue", variable, name)
	}
	q, err := sqs.New(c.SQS, name, sqs.Options{Metrics: c.Metrics, Logger: c.Logger})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	c.Check(variable, q.Check, routes...)
	return q, nil
}
