package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/metrics"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// Setup has the clients, log and meters that an application is built with.
type Setup struct {
	// AWS returns the configuration for a service's client ("dynamodb" of source,
	// "sqs", "opensearch"), endpoint included.
	AWS func(service string) aws.Config
	// Accounts are for the aws of sinks. Default: roles are assumed by AWS("sts"), and
	// a profile is an error.
	Accounts *accounts.Accounts

	Logger *slog.Logger // default slog.Default()

	// Check runs the App's checks: it asks every sink, and creates missing indices. A
	// daemon runs them by run.Setup.Check. A function skips them to start faster: its
	// first record shows a missing sink.
	Check bool

	Metrics metrics.Meter // nil: none
	// Cascade is a [cascade.Config.Progress]; nil: none.
	Cascade func(cascade.Progress)

	// Fakes replace services in tests.
	Fakes Fakes
}

// Fakes replace services; a nil field replaces none. With all fields set, Build needs
// no AWS. Then Setup.Check must be false.
type Fakes struct {
	Tables Tables
	Send   func(ctx context.Context, queue string, m sluice.Message) error // to a queue by its name or URL
	Write  func(ctx context.Context, sink string, op document.Op) error    // to a cluster by its sink's name
	Now    func() time.Time                                                // default time.Now
}

// App is what a file describes, ready to run.
type App struct {
	Router *router.Router
	Routes []BuiltRoute // in the order of the file; then the routes of cascades' and watchdogs' queues
	Tables []string     // tables to read: names or ARNs of streams
	Queues []string     // queues to consume, also for cascades and watchdogs: names or URLs
	// Consumed has the account of each of the Queues.
	Consumed map[string]accounts.Access
	AWS      func(service string) aws.Config // as Setup has it
	// Table returns the configuration of a table of handlers.
	Table  func(name string) aws.Config
	Checks []SinkCheck // checks of the sinks that routes use; Build runs them if Setup.Check is set
}

// SinkCheck checks that a sink exists and fits its routes, and creates its indices. Its
// error has the sink's place in the file.
type SinkCheck struct {
	Sink   string   // the sink's name, or "table" and the table's name
	Routes []string // routes that use the sink
	Check  func(context.Context) error
}

// BuiltRoute is one route, with the parts of its handler that commands need. At most
// one of the last fields is set.
type BuiltRoute struct {
	Name string
	Kind string // one of Kinds
	// Written is the route as the file has it; empty if Sluice adds the route.
	Written Route
	// When tries the route's condition; nil without one.
	When func(*sluice.Record) (bool, error)
	// Explain says what the handler would do for a record that has matched,
	// without doing it: it may read tables.
	Explain func(ctx context.Context, rec *sluice.Record) ([]Effect, error)
	// Lacks lists what the route still needs in a valid file, such as another route, or
	// an index for a recount. With ask it also asks sinks and tables. It may be nil.
	Lacks func(ctx context.Context, ask bool) error

	Projection *Projected
	Cascade    *cascade.Cascade
	Recounts   []rollup.Recount // one for each counter; DryRun and Found are not set
}

// Route returns the route of a name; an empty one if there is none.
func (a *App) Route(name string) BuiltRoute {
	i := slices.IndexFunc(a.Routes, func(r BuiltRoute) bool { return r.Name == name })
	if i < 0 {
		return BuiltRoute{}
	}
	return a.Routes[i]
}

// Projected is a projection and its cluster.
type Projected struct {
	*projection.Projection
	Options projection.Options
	Client  *opensearch.Client
	Sink    *opensearch.Sink
	// Write writes as the route does: to the index behind an alias, and during a
	// reindex also to the new index. A reindex itself writes by Sink.
	Write func(ctx context.Context, op document.Op) error
	// Marks are the marks of the documents; nil without version: sequence.
	Marks *opensearch.Marks
	Store *dynamodb.Store

	cluster *cluster
}

// Effect describes what a handler would do, as a text and as data. It has payloads only
// on request.
type Effect struct {
	Does   string `json:"does"`             // "send to queue calls", "write document 7 of orders as version 3"
	Sink   string `json:"sink"`             // its name
	Target string `json:"target"`           // queue, index or table
	Key    string `json:"key,omitempty"`    // document id, item key, dedupe key
	Detail string `json:"detail,omitempty"` // body of message or document
}

// Build makes the sinks and routes of a parsed file. Its errors name the route or sink,
// with its place in the file.
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
	for _, q := range b.app.Queues {
		at, err := c.queueAccess(q)
		b.app.Consumed[q], errs = at, append(errs, err)
	}
	errs = append(errs, b.addWorker())
	for _, add := range b.watchdogs {
		errs = append(errs, add())
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
	// Their routes follow those of the file.
	worked    []*cascade.Cascade // cascades that have a queue
	watchdogs []func() error     // each adds the route of an escalation's watchdog
}

func newBuilder(c *Config, s Setup) (*builder, error) {
	if f := s.Fakes; s.AWS == nil && f.Tables != nil && f.Send != nil && f.Write != nil {
		s.AWS = func(string) aws.Config { return aws.Config{Region: "us-east-1"} } // clients with fakes call no service
	}
	if s.AWS == nil {
		return nil, errors.New("config: Setup.AWS is nil: it returns the configuration of a service")
	}
	if s.AWS("dynamodb").Region == "" {
		return nil, c.wrong("aws.region", errors.New("no Region: set it here, or by AWS_REGION, or in the profile of AWS_PROFILE"))
	}
	s.Logger = cmp.Or(s.Logger, slog.Default())
	if s.Accounts == nil {
		s.Accounts = accounts.New(s.AWS("sts"), nil)
	}
	b := &builder{c: c, s: s, resolver: c.EntityType.resolver(), app: &App{AWS: s.AWS, Tables: slices.Clone(c.Source.Tables), Consumed: map[string]accounts.Access{}}}
	var err error
	if b.sinks, err = openSinks(c, s); err != nil {
		return nil, err
	}
	b.app.Table = func(name string) aws.Config { return b.sinks.of(name).cfg }
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
	made.Name, made.Kind, made.Written = r.Name, r.Kind(), *r
	b.made = append(b.made, made)
	b.app.Routes = append(b.app.Routes, made.BuiltRoute)
	return nil
}

// addOwn adds a route for messages that Sluice sends itself: their kind is its name.
func (b *builder) addOwn(handle sluice.Handler, r BuiltRoute) error {
	b.app.Routes = append(b.app.Routes, r)
	return b.app.Router.Add(b.c.place("routes"), r.Name+"#"+string(sluice.Delivery), handle, router.Name(r.Name))
}

// changed returns an effect on items of a table.
func (b *builder) changed(does, table string, key sluice.Item) Effect {
	return Effect{Does: does, Sink: b.sinks.storeName, Target: table, Key: string(key.AppendJSON(nil))}
}

// consume adds a queue to consume, once, by name or by URL.
func (b *builder) consume(queue string) {
	if !b.consumes(queue) {
		b.app.Queues = append(b.app.Queues, queue)
	}
}

// consumes reports whether the App consumes a queue.
func (b *builder) consumes(queue string) bool {
	return slices.ContainsFunc(b.app.Queues, func(q string) bool { return sameQueue(q, queue) })
}

// checkSent finds messages that the application sends to a queue which it consumes,
// without a route for them.
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

// untaken returns the pattern of a message kind without a route; "" if every kind has
// one. Without kinds, any route for messages is enough.
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

// tableName returns the name of a table that is given by name, or by the ARN of its
// stream.
func tableName(table string) string {
	if _, resource, ok := strings.Cut(table, ":table/"); ok {
		name, _, _ := strings.Cut(resource, "/")
		return name
	}
	return table
}

// wrong adds the place in the file to err.
func (c *Config) wrong(field string, err error) error {
	e := c.fault(field, "%s", c.source().detail(field, err))
	e.err = err
	return e
}

// TableError adds to err the place in the file of table i of source.tables.
func (c *Config) TableError(i int, err error) error {
	return c.FieldError(c.source().one("source.tables", i), err)
}

// FieldError adds to err the place in the file of a field, such as daemon.state.
func (c *Config) FieldError(field string, err error) error {
	e := c.fault(field, "%v", err)
	e.err = err
	return e
}

// place returns a field's place in the file, "file:line:column". For a Config that was
// not parsed it returns the field's path.
func (c *Config) place(field string) string {
	d := c.source()
	if p := d.where(field); p.line > 0 {
		return fmt.Sprintf("%s:%d:%d", d.name, p.line, p.column)
	}
	return field
}
