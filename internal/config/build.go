package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/metrics"
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

	// Check makes the checks of the App: it asks the sinks whether they are there,
	// and makes indices. A daemon leaves them to run.Setup.Check. A function does
	// without: it finds out with its first record, and starts faster.
	Check bool

	Metrics metrics.Meter // nil: none

	// Fakes stand in for services, in tests of a file.
	Fakes Fakes
}

// Fakes stand in for services. What is nil is not replaced; with all of them
// Build needs no AWS, and Check is to be false.
type Fakes struct {
	Tables Tables
	Send   func(ctx context.Context, queue string, m sluice.Message) error // to a queue by its name or URL
	Write  func(ctx context.Context, sink string, op document.Op) error    // to a cluster by its sink's name
	Now    func() time.Time                                                // default time.Now
}

// App is what a file describes, ready to run.
type App struct {
	Router *router.Router
	Routes []BuiltRoute // in the order of the file; routes that work off queues of cascades, and of watchdogs, come last
	Tables []string     // whose streams are read: names or ARNs
	Queues []string     // that are consumed, also for cascades and watchdogs: names or URLs
	Checks []SinkCheck  // of the sinks that routes use; Build makes them if Setup.Check is set
}

// SinkCheck asks whether a sink is there and is what its routes need, and makes
// its indices. Its error has the sink's place in the file.
type SinkCheck struct {
	Sink   string   // its name, or "table" and that of a table
	Routes []string // that use it
	Check  func(context.Context) error
}

// BuiltRoute is one route and what the commands need of its handler: its last
// fields are of one kind at most.
type BuiltRoute struct {
	Name string
	Kind string // one of Kinds
	// Explain says what the handler would do for a record that has matched,
	// without doing it: it may read tables.
	Explain func(ctx context.Context, rec *sluice.Record) ([]Effect, error)
	// Lacks says what a file without mistakes lacks for the route, such as a route
	// beside it or a way to recount: with ask as sinks and tables tell, too. It may be
	// nil.
	Lacks func(ctx context.Context, ask bool) error

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
	// Marks are those of its documents; nil where they are not versioned by
	// sequence.
	Marks *opensearch.Marks
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

// Build makes sinks and routes of a file that was read. Its errors name the route or
// sink, with its place in the file.
func (c *Config) Build(ctx context.Context, s Setup) (*App, error) {
	b, err := newBuilder(c, s)
	if err != nil {
		return nil, err
	}
	var errs []error
	for i := range c.Routes {
		errs = append(errs, b.add(i))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	errs = append(errs, b.checkSent())
	for _, kind := range Kinds() {
		for _, made := range b.made {
			if made.Kind == kind && made.last != nil {
				errs = append(errs, made.last())
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	b.app.Checks = b.sinks.checks()
	if s.Check {
		for _, one := range b.app.Checks {
			errs = append(errs, one.Check(ctx))
		}
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
	}
	return b.app, nil
}

// builder makes an App.
type builder struct {
	c        *Config
	s        Setup
	sinks    *sinks
	resolver router.Resolver
	app      *App
	made     []*built
	worked   []*cascade.Cascade // cascades that have a queue
}

func newBuilder(c *Config, s Setup) (*builder, error) {
	if f := s.Fakes; s.AWS == nil && f.Tables != nil && f.Send != nil && f.Write != nil {
		s.AWS = func(string) aws.Config { return aws.Config{Region: "us-east-1"} } // of clients that call nobody
	}
	if s.AWS == nil {
		return nil, errors.New("config: Setup.AWS is nil: it returns the configuration of a service")
	}
	if s.AWS("dynamodb").Region == "" {
		return nil, c.wrong("aws.region", errors.New("no Region: set it here, or by AWS_REGION, or in the profile of AWS_PROFILE"))
	}
	s.Logger = cmp.Or(s.Logger, slog.Default())
	b := &builder{c: c, s: s, resolver: c.resolver(), app: &App{Tables: slices.Clone(c.Source.Tables)}}
	var err error
	if b.sinks, err = openSinks(c, s); err != nil {
		return nil, err
	}
	for _, q := range c.Source.Queues {
		b.consume(q)
	}
	b.app.Router = router.New(router.TypeFrom(b.resolver))
	return b, nil
}

// add makes the route at i and registers it.
func (b *builder) add(i int) error {
	r, path := &b.c.Routes[i], element("routes", i)
	b.sinks.users = []string{r.Name}
	at := path + "." + r.Kind()
	made, err := r.handlers()[0].build(b, at, r)
	if err != nil {
		if !errors.As(err, new(*Error)) {
			err = b.c.wrong(at, err)
		}
		return err
	}
	options, err := r.options(b.c, path, made)
	if err != nil {
		return err
	}
	if err := b.app.Router.Add(b.c.place(path), strings.Join(r.On, " "), made.handle, options...); err != nil {
		return err
	}
	made.Name, made.Kind = r.Name, r.Kind()
	b.made = append(b.made, made)
	b.app.Routes = append(b.app.Routes, made.BuiltRoute)
	return nil
}

// consume has a queue consumed, once, be it by name or URL.
func (b *builder) consume(queue string) {
	if !b.consumes(queue) {
		b.app.Queues = append(b.app.Queues, queue)
	}
}

// consumes tells whether a queue is consumed: the same URL, or a name that is
// the end of one. Two URLs may end alike, in two Regions or accounts.
func (b *builder) consumes(queue string) bool {
	return slices.ContainsFunc(b.app.Queues, func(q string) bool {
		return q == queue || path.Base(q) == path.Base(queue) && (path.Base(q) == q || path.Base(queue) == queue)
	})
}

// checkSent finds messages that the application would take from their queue
// itself, without a route for them.
func (b *builder) checkSent() error {
	for _, made := range b.made {
		for _, m := range made.sends {
			if !b.consumes(m.queue.name) {
				continue
			}
			if missing := b.c.untaken(m.kinds); missing != "" {
				return b.c.wrong(m.field, fmt.Errorf("the queue %s is consumed by the application itself, and no route takes %s: its messages would fail for good; want a queue of their own", m.queue.name, missing))
			}
		}
	}
	return nil
}

// untaken is a kind of messages that no route is for, as a pattern; "" if there
// is none. Without kinds any route for messages is one.
func (c *Config) untaken(kinds []string) string {
	taken := map[string]bool{}
	for i := range c.Routes {
		for _, pattern := range c.Routes[i].patterns() {
			if kind, ok := strings.CutSuffix(pattern, "#"+string(sluice.Delivery)); ok {
				taken[kind] = true
			}
		}
	}
	if len(taken) == 0 {
		return string(sluice.Delivery)
	}
	for _, kind := range kinds {
		if !taken[kind] && !taken["*"] {
			return kind + "#" + string(sluice.Delivery)
		}
	}
	return ""
}

// tableName is the name of a table that may be given by the ARN of its stream.
func tableName(table string) string {
	if _, resource, ok := strings.Cut(table, ":table/"); ok {
		name, _, _ := strings.Cut(resource, "/")
		return name
	}
	return table
}

// wrong says where in the file err is about.
func (c *Config) wrong(field string, err error) error {
	e := c.fault(field, "%s", c.detail(field, err))
	e.err = err
	return e
}

// TableError says where in the file the table is that err is about: that at i of
// source.tables.
func (c *Config) TableError(i int, err error) error {
	e := c.fault(c.source().one("source.tables", i), "%v", err)
	e.err = err
	return e
}

// place is where in the file a field stands: "file:line:column", or the field's
// path where the Config was not read.
func (c *Config) place(field string) string {
	d := c.source()
	if p := d.where(field); p.line > 0 {
		return fmt.Sprintf("%s:%d:%d", d.name, p.line, p.column)
	}
	return field
}
