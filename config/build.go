package config

import (
	"context"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/document"
	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// Setup is what an application is built on.
type Setup struct {
	// AWS returns the configuration for a service's client ("dynamodb", "sqs",
	// "opensearch"), endpoint included.
	AWS    func(service string) aws.Config
	Logger *slog.Logger // default slog.Default()

	// Check asks the sinks whether they are there, and makes indices. A
	// function does without: it finds out with its first record, and starts
	// faster.
	Check bool

	// Hooks for metrics; the zero value has none.
	RouterHooks router.Hooks
	BatchHooks  func(sink string) batch.Hooks
	Consumed    func(table string, units float64)
	Documents   opensearch.Hooks
	Projection  projection.Hooks
	Cascade     cascade.Hooks
}

// App is what a file describes, ready to run.
type App struct {
	Router *router.Router
	Routes []BuiltRoute // in the order of the file; routes that work off queues of cascades come last
	Tables []string     // whose streams are read: names or ARNs
	Queues []string     // that are consumed, also for cascades: names or URLs
}

// BuiltRoute is one route and what the commands need of its handler. At most one
// of its last fields is set.
type BuiltRoute struct {
	Name string
	Kind string // send, project, cascade, count, escalate or log
	// Explain says what the handler would do for a record that has matched,
	// without doing it: it may read tables.
	Explain func(ctx context.Context, rec *sluice.Record) ([]Effect, error)

	Projection *Projected
	Cascade    *cascade.Cascade
	Recounts   []rollup.Recount // without DryRun and Found; one for each counter
}

// Projected is a projection and its cluster.
type Projected struct {
	*projection.Projection
	Options projection.Options
	Client  *opensearch.Client
	Sink    *opensearch.Sink
	// Write writes as the route does: to the index behind an alias, and during a
	// reindex to its successor, too. A reindex itself writes by Sink.
	Write func(ctx context.Context, op document.Op) error
	Store *dynamodb.Store
	Types []string // entity types of its patterns; "*" is all
}

// Effect is what a handler would do, in words and as data; payloads are left out
// unless they are asked for.
type Effect struct {
	Does   string `json:"does"`             // "send to queue calls", "write document 7 of orders as version 3"
	Sink   string `json:"sink"`             // its name
	Target string `json:"target"`           // queue, index or table
	Key    string `json:"key,omitempty"`    // document id, item key, dedupe key
	Detail string `json:"detail,omitempty"` // body of message or document
}

// Build makes sinks and routes. Its error names the route or sink, with its
// place in the file.
func (c *Config) Build(ctx context.Context, s Setup) (*App, error) { panic("not yet") }
