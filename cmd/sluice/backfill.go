package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/internal/snapshot"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// target is the index that the table is projected into.
type target struct {
	projectionFlags
	maxIndices int
}

func backfillCommand(c *cli) *cobra.Command {
	var o daemon.Options
	var s snapshot.Options
	var to target
	var asJSON bool
	by := routeFlag{cli: c, instead: []string{
		"opensearch", "opensearch-ca", "allow-plain-http", "opensearch-sign", "index", "max-indices", "id", "version-attribute", "version-sequence", "unversioned", "type-attribute",
	}}
	cmd := &cobra.Command{
		Use:   "backfill",
		Short: "Write all items of a table into an OpenSearch index",
		Long: `Read a whole table, and write a document for each item into an OpenSearch index. A
document replaces only an older version, so changes made meanwhile stay.

A stopped backfill goes on where it was. A finished one needs --again. Exit code 1
also means that items became dead letters.

` + routeHelp + `

The command needs the position of the table's stream from a stopped daemon's state
file. Beside a running daemon use sluice run --backfill. Give --without-stream if
another program reads the stream, or nothing writes to the table. More:
docs/backfill.md.`,
		Example: `  sluice backfill --route orders

  # By flags, beside a stream that another program reads; gently
  sluice backfill --table orders --without-stream --state backfill.db --read-units 200 \
    --opensearch https://search.example.com:9200 --index orders-2 --id '{pk}:{sk}' --version-attribute rev`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := scanFlags(s.Scan); err != nil {
				return err
			}
			p, err := by.find(cmd)
			if err != nil {
				return err
			}
			app, env := daemon.App{Name: "sluice", Routes: to.routes}, c.env
			if p == nil {
				if err := errors.Join(o.FromEnv(cmd.Flags(), c.env), to.validate(c.env)); err != nil {
					return usage("%w", err)
				}
				s.Name = to.name()
				err = c.reach(&o, nil)
			} else {
				cfg, name, wrong := p.backfill(cmd, &o, to.types, c.env)
				if wrong != nil {
					return wrong
				}
				s.Name, app.Routes, env = name, routesOf(cfg), c.envWith(cfg)
				err = c.reach(&o, cfg)
			}
			if err != nil {
				return err
			}
			show := newShow(asJSON, c.stdout, c.stderr)
			if show.bar != nil && !cmd.Flags().Changed("log-level") {
				o.LogLevel = "warn" // lines would run through the bar
			}
			s.Hooks.Progress = show.progress
			err = daemon.Backfill(cmd.Context(), app, o, s, env, c.stderr)
			show.end(err)
			return err
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringSliceVar(&o.Tables, "table", nil, "`table` to read ($SLUICE_TABLES)")
	by.add(cmd, fs)
	to.addConnection(fs)
	fs.StringVar(&to.index, "index", "", "index or alias, or a `template` such as 'orders-{region|lower}'")
	fs.IntVar(&to.maxIndices, "max-indices", 0, "most `names` that --index makes (default 100)")
	to.addProjection(fs, "write without versions: documents may keep an old state")
	fs.IntVar(&s.Scan.Segments, "segments", 0, "parts read in parallel (default: by size)")
	fs.Float64Var(&s.Scan.ReadUnits, "read-units", 0, "read `units` a second (default: --share, or 1000 on demand)")
	fs.Float64Var(&s.Scan.Share, "share", 0, "share of the provisioned read capacity (default 0.25)")
	fs.BoolVar(&s.Scan.Eventual, "eventual", false, "read eventually consistent, at half the units")
	fs.BoolVar(&s.Again, "again", false, "read the table again")
	fs.BoolVar(&s.WithoutStream, "without-stream", false, "begin without a stream position")
	fs.StringVar(&o.State, "state", "sluice.db", "`file` of positions and dead letters, or dynamodb:TABLE ($SLUICE_STATE)")
	fs.StringVar(&o.Application, "application", "", "`name` of the application ($SLUICE_APPLICATION)")
	fs.DurationVar(&o.Grace, "grace", 25*time.Second, "time from SIGTERM to the exit ($SLUICE_GRACE)")
	fs.StringVar(&o.Endpoint, "endpoint-dynamodb", "", "`URL` of DynamoDB ($SLUICE_ENDPOINT_DYNAMODB)")
	fs.BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	fs.StringVar(&o.LogFormat, "log-format", "text", "text or json ($SLUICE_LOG_FORMAT)")
	fs.StringVar(&o.LogLevel, "log-level", "info", "debug, info, warn or error ($SLUICE_LOG_LEVEL)")
	return cmd
}

func (t *target) validate(env func(string) string) error {
	errs := []error{t.findURLs(env)}
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if t.index == "" {
		bad("--index: no index is named")
	}
	if t.id == "" {
		bad("--id: no template of the documents' ids is given, such as '{pk}'")
	}
	if t.versions() != 1 {
		bad("want one of --version-attribute, --version-sequence and --unversioned, which decide between an item of the table and a change of it")
	}
	if t.sign != "" && t.sign != "es" && t.sign != "aoss" {
		bad("--opensearch-sign: %q is not one of es, aoss", t.sign)
	}
	for _, typ := range t.types {
		if typ == "" || strings.ContainsAny(typ, " *#") {
			bad("--type: %q is no entity type: want one without ' ', '*' and '#'", typ)
		}
	}
	return errors.Join(errs...)
}

// name tells backfills of one table apart: each way to write it is one, and so is
// each cluster, as far as its hosts tell.
func (t *target) name() string {
	var hosts []string
	for _, text := range t.urls {
		if u, err := url.Parse(text); err == nil {
			hosts = append(hosts, u.Host+u.Path)
		}
	}
	slices.Sort(hosts)
	name := strings.ReplaceAll(t.index, "/", "_")
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q %v", hosts, t.index, t.id, t.types, t.typeAttribute, t.versionAttribute, t.bySequence))
	return name[:min(len(name), 100)] + "-" + hex.EncodeToString(sum[:4])
}

// routes makes the one route, whose handler is a projection.
func (t *target) routes(ctx context.Context, s daemon.Setup) (sluice.Matcher, error) {
	client, err := t.connect(func() (aws.Config, error) { return s.AWS("opensearch"), nil })
	if err != nil {
		return nil, err
	}
	sink, err := opensearch.New(client, opensearch.Options{})
	if err != nil {
		return nil, err
	}
	version, err := t.version()
	if err != nil {
		return nil, err
	}
	o := projection.Options{Index: t.index, MaxIndices: t.maxIndices, ID: t.id, Version: version, UnfencedBackfill: t.unversioned}
	write := sink.Write
	if t.bySequence {
		store, err := dynamodb.New(s.AWS("dynamodb"), dynamodb.Options{})
		if err != nil {
			return nil, err
		}
		o.Current = store.Current
		write = client.Indices().Marks(projection.DefaultMark, false).Writer(write)
	}
	p, err := projection.New(write, o)
	if err != nil {
		return nil, usage("%w", err)
	}
	// Better now than with the first item. OpenSearch Serverless does not answer at its root.
	if t.sign != "aoss" {
		if err := client.Call(ctx, "GET", "/", nil, nil); err != nil {
			return nil, fmt.Errorf("OpenSearch does not answer: %w", err)
		}
	}
	if !t.bySequence && !strings.Contains(t.index, "{") {
		err := client.Call(ctx, "HEAD", "/"+url.PathEscape(t.index), nil, nil)
		var status *opensearch.StatusError
		switch answered := errors.As(err, &status); {
		case answered && status.Status == http.StatusNotFound:
			s.Logger.Warn("the index does not exist: OpenSearch makes it with the first document, and guesses its mappings", "index", t.index)
		case err != nil && !answered:
			return nil, fmt.Errorf("OpenSearch does not answer: %w", err)
		}
	}
	types := t.types
	if len(types) == 0 {
		types = []string{"*"}
	}
	r := router.New(router.TypeFrom(router.Attribute(t.typeAttribute)))
	r.Handle(strings.Join(types, "#SNAPSHOT ")+"#SNAPSHOT", p.Handle, router.Name("projection"), router.Redrive())
	return r, nil
}

// backfill is the file with the route alone, for a backfill of one table, and
// the name that tells this backfill from others of the table. It sets o as the
// file and the environment say.
func (p *projected) backfill(cmd *cobra.Command, o *daemon.Options, types []string, env func(string) string) (*config.Config, string, error) {
	flagged := o.Tables
	fromFile(cmd.Flags().Changed, o, p.cfg)
	o.Tables = flagged // one of the file's, below
	if err := o.FromEnv(cmd.Flags(), env); err != nil {
		return nil, "", err
	}
	if len(o.Tables) > 1 {
		return nil, "", usage("--table: %q are named: one backfill reads one table", o.Tables)
	}
	table, err := oneTable(p.cfg, strings.Join(o.Tables, ""))
	if err != nil {
		return nil, "", err
	}
	o.Tables = []string{table}
	cfg, err := p.alone(table, types)
	if err != nil {
		return nil, "", err
	}
	return cfg, p.backfillName(cfg), nil
}

// backfillName depends on the place of the documents and the selection of items,
// not on the content of documents: --again writes new content.
func (p *projected) backfillName(only *config.Config) string {
	r := only.Routes[0]
	types, _ := json.Marshal(only.EntityType) // texts never fail
	t := target{projectionFlags: projectionFlags{
		urls: clusterURLs(p.cfg, r.Project.To), index: r.Project.Index, id: r.Project.ID, types: r.On,
		typeAttribute: string(types), versionAttribute: r.Project.Version,
	}}
	return t.name()
}

const mostSegments = 256 // that a scan takes

// scanFlags says which flags of a scan are wrong, before anything is opened: by
// their names, which the scan does not know.
func scanFlags(o snapshot.ScanOptions) error {
	var errs []error
	if o.Segments < 0 || o.Segments > mostSegments {
		errs = append(errs, usage("--segments: %d is not 1 to %d, or 0 for the default", o.Segments, mostSegments))
	}
	if !(o.ReadUnits >= 0) { // also refuses NaN
		errs = append(errs, usage("--read-units: %v is not above 0, or 0 for the default", o.ReadUnits))
	}
	if !(o.Share >= 0 && o.Share <= 1) {
		errs = append(errs, usage("--share: %v is not above 0 and at most 1, or 0 for the default", o.Share))
	}
	return errors.Join(errs...)
}
