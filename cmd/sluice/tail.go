package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/reread"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
)

type tailOptions struct {
	start         string
	types, events []string
	typeAttribute string
	where         string
	limit         int
	sequence      string
	values        bool
	asJSON        bool
}

func tailCommand(c *cli) *cobra.Command {
	var o tailOptions
	cmd := &cobra.Command{
		Use:   "tail [table]",
		Short: "Show the changes of a table as they happen",
		Long: `Show the changes of a table: time, event, entity type, key and changed attributes.
With a configuration, also show the routes, and mark failing ones.

The command stores and handles nothing, but is one of the stream's two readers. The
table is a name or the ARN of a stream.`,
		Example: `  sluice tail orders --where 'new.status == "failed" && old.status != "failed"'
  sluice tail orders --from TRIM_HORIZON --limit 100 --json > records.ndjson
  sluice tail orders --sequence 4421584500000000017450439091`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f := cmd.Flags(); f.Changed("sequence") {
				for _, other := range []string{"from", "type", "event", "where", "limit"} {
					if f.Changed(other) {
						return usage("--sequence is for one record: leave --%s out", other)
					}
				}
				if !sluice.Sequence(o.sequence).Valid() {
					return usage("--sequence: %q is no sequence number", o.sequence)
				}
			}
			return c.tail(cmd.Context(), args, o)
		},
	}
	oneArgument(cmd, "%d tables are named: want one", c.ofFile(sourceTables))
	f := cmd.Flags()
	f.StringVar(&o.start, "from", poller.Latest, "begin at TRIM_HORIZON or LATEST")
	f.StringSliceVar(&o.types, "type", nil, "only this entity `type`; repeatable")
	f.StringSliceVar(&o.events, "event", nil, "only this `event`: INSERT, MODIFY or REMOVE")
	f.StringVar(&o.typeAttribute, "type-attribute", "entityType", "`attribute` of the entity type, without a configuration")
	f.StringVar(&o.where, "where", "", "only records for which this `expression` is true")
	f.StringVar(&o.sequence, "sequence", "", "show the record of this `number`, and end")
	f.IntVar(&o.limit, "limit", 0, "end after this many records")
	f.BoolVar(&o.values, "values", false, "also show values of attributes")
	f.BoolVar(&o.asJSON, "json", false, "print whole records as JSON, one a line")
	completeBy(cmd, "event", fixed(string(sluice.Insert), string(sluice.Modify), string(sluice.Remove)))
	return cmd
}

func (o *tailOptions) validate() error {
	if o.start != poller.TrimHorizon && o.start != poller.Latest {
		return usage("--from: %q is not one of %s, %s", o.start, poller.TrimHorizon, poller.Latest)
	}
	for i, e := range o.events {
		o.events[i] = strings.ToUpper(e)
		if !slices.Contains([]sluice.EventName{sluice.Insert, sluice.Modify, sluice.Remove}, sluice.EventName(o.events[i])) {
			return usage("--event: %q is not one of INSERT, MODIFY, REMOVE", e)
		}
	}
	if o.limit < 0 {
		return usage("--limit: %d is below 0", o.limit)
	}
	return nil
}

func (c *cli) tail(ctx context.Context, args []string, o tailOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	cfg, err := c.loadMaybe()
	if err != nil {
		return err
	}
	name, err := theTable(args, cfg)
	if err != nil {
		return err
	}
	s, err := stream(name)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	t := &tail{tailOptions: o, cli: c, paint: c.paint(), stop: stop, route: &sluice.Route{Name: "tail"}}
	if err := t.prepare(ctx, cfg); err != nil {
		return err
	}
	services, _, err := c.accounts(ctx, cfg)
	if err != nil {
		return err
	}
	if o.sequence != "" {
		return t.one(ctx, services("dynamodb"), s)
	}
	t.route.Handler = t.show
	p, err := poller.New(services("dynamodb"), t, poller.Options{
		Application: "tail", Streams: []poller.Stream{s}, Store: state.NewMemory(),
		Start: o.start, StartName: "--from", EndpointName: c.endpointName("dynamodb", cfg), Logger: c.logger(),
		// One after the other, so that they are shown as they happened, and
		// nothing is handled behind the last one. What cannot be decoded is
		// shown, too.
		Flow: flow.Options{Order: flow.ByShard, Concurrency: 1, DeadLetter: t},
	})
	if err != nil {
		return err
	}
	var told sync.WaitGroup
	if o.start == poller.Latest {
		told.Go(func() { // that no record has come yet, once the stream exists
			select {
			case <-p.Opened():
				fmt.Fprintf(c.stderr, "waiting for changes of %s from now on; --from TRIM_HORIZON shows earlier ones, too\n", plain(name))
			case <-ctx.Done():
			}
		})
	}
	err = p.Run(ctx)
	stop()
	told.Wait()
	return cmp.Or(err, t.err)
}

// theTable is the argument, or the only table of the file.
func theTable(args []string, cfg *config.Config) (string, error) {
	switch {
	case len(args) == 1 && args[0] != "":
		return args[0], nil
	case cfg == nil:
		return "", usage("no table is named: say which, such as sluice tail orders")
	case len(cfg.Source.Tables) == 1:
		return cfg.Source.Tables[0], nil
	case len(cfg.Source.Tables) == 0:
		return "", usage("no table is named, nor does the file name one: say which, such as sluice tail orders")
	}
	return "", usage("the file has several tables: say which: %s", strings.Join(cfg.Source.Tables, ", "))
}

// tail is the Matcher that has all records take the one route that shows them.
type tail struct {
	tailOptions
	cli    *cli
	paint  paint
	route  *sluice.Route
	router *router.Router                     // of the file; one without routes else
	app    *config.App                        // of the file; nil without one
	passes func(*sluice.Record) (bool, error) // --where; nil: all
	stop   func()

	mu    sync.Mutex
	shown int
	err   error // of printing
}

func (t *tail) prepare(ctx context.Context, cfg *config.Config) (err error) {
	if t.where != "" {
		types := cfg
		if cfg == nil {
			types = &config.Config{EntityType: config.EntityType{Attribute: t.typeAttribute}}
		}
		if t.passes, err = types.Expression(t.where); err != nil {
			return usage("--where: %w", err)
		}
	}
	if cfg == nil {
		t.router = router.New(router.TypeFrom(router.Attribute(t.typeAttribute)))
		return nil
	}
	app, err := t.cli.build(ctx, cfg, config.Setup{})
	if err != nil {
		return err
	}
	t.router, t.app = app.Router, app
	return nil
}

// Match implements [sluice.Matcher].
func (t *tail) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	if err := rec.Err(); err != nil {
		return dst, err
	}
	return append(dst, t.route), nil
}

// Routes implements [sluice.Matcher].
func (t *tail) Routes() []*sluice.Route { return []*sluice.Route{t.route} }

// Park shows what takes no route, in place of keeping it.
func (t *tail) Park(_ context.Context, rec *sluice.Record, f sluice.Failure) error {
	t.print(func() error {
		_, err := fmt.Fprintf(t.cli.stderr, "shard %s, sequence number %s: %s\n", rec.ShardID, rec.Sequence, plain(f.Last.Error()))
		return err
	})
	return nil
}

// show prints a record unless a flag leaves it out.
func (t *tail) show(ctx context.Context, rec *sluice.Record) error {
	typ, typeErr := t.router.Type(rec)
	if len(t.types) > 0 && !slices.Contains(t.types, typ) || len(t.events) > 0 && !slices.Contains(t.events, string(rec.EventName)) {
		return nil
	}
	if !t.fulfils(rec) {
		return nil
	}
	t.print(func() error {
		if t.asJSON {
			return printLine(t.cli.stdout, json.RawMessage(whole(rec)))
		}
		if typeErr != nil {
			typ = "?"
		}
		_, err := fmt.Fprint(t.cli.stdout, t.text(ctx, rec, typ))
		return err
	})
	return nil
}

// fulfils reports whether --where accepts a record. It reports a record for which
// that is unknown.
func (t *tail) fulfils(rec *sluice.Record) bool {
	if t.passes == nil {
		return true
	}
	ok, err := t.passes(rec)
	if err != nil {
		fmt.Fprintf(t.cli.stderr, "--where: left out sequence number %s: %s\n", rec.Sequence, plain(err.Error()))
	}
	return ok && err == nil
}

// print prints one after the other, and ends at the limit or when nobody reads
// any more.
func (t *tail) print(write func() error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil || t.limit > 0 && t.shown == t.limit {
		return
	}
	if t.err = write(); t.err == nil {
		t.shown++
	}
	if t.err != nil || t.shown == t.limit {
		t.stop()
	}
}

// one shows the record with a sequence number, such as a record that a daemon
// holds.
func (t *tail) one(ctx context.Context, cfg aws.Config, s poller.Stream) error {
	arn := s.ARN
	if arn == "" {
		table, err := describeTable(ctx, cfg, s.Table)
		if err != nil {
			return err
		}
		if arn = aws.ToString(table.LatestStreamArn); arn == "" {
			return fmt.Errorf("table %q has no stream", s.Table)
		}
	}
	rec, err := reread.New(cfg).Record(ctx, arn, "", sluice.Sequence(t.sequence), "")
	if err != nil {
		return err
	}
	if err := rec.Err(); err != nil {
		return fmt.Errorf("record %s: %w", t.sequence, err)
	}
	_ = t.show(ctx, rec)
	return t.err
}
