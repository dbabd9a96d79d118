package main

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/audit"
	"github.com/sluicehq/sluice/internal/docversion"
	"github.com/sluicehq/sluice/internal/snapshot"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

const searchHelp = `SLUICE_ENDPOINT_DYNAMODB is the URL of DynamoDB, if it is not AWS's.`

// search has the flags for a cluster and its documents.
type search struct {
	projectionFlags
	table string
	route routeFlag
}

func (s *search) addProjection(f *pflag.FlagSet) {
	f.StringVar(&s.table, "table", "", "`name` of the table")
	s.projectionFlags.addProjection(f, "the documents have no versions")
}

// client connects; no request is made.
func (s *search) client(ctx context.Context) (*opensearch.Client, error) {
	if err := s.findURLs(s.route.cli.env); err != nil {
		return nil, usage("%w", err)
	}
	client, err := s.projectionFlags.connect(func() (aws.Config, error) {
		services, _, err := s.route.cli.accountsMaybe(ctx, nil)
		if err != nil {
			return aws.Config{}, err
		}
		return services("opensearch"), nil
	})
	if err != nil {
		return nil, usage("%w", err)
	}
	return client, nil
}

// missing says which of the flags that are needed are empty.
func missing(flags ...string) error {
	var empty []string
	for i := 0; i < len(flags); i += 2 {
		if flags[i+1] == "" {
			empty = append(empty, "--"+flags[i]+" is missing")
		}
	}
	if len(empty) > 0 {
		return usage("%s", strings.Join(empty, ", "))
	}
	return nil
}

// describing are the flags that describe a projection and its cluster.
var describing = []string{"opensearch", "opensearch-ca", "allow-plain-http", "opensearch-sign", "table", "id", "version-attribute", "version-sequence", "unversioned", "type", "type-attribute", "index"}

// connect finds the projected table and index, by the file's route or by flags.
// unfenced is passed to source.
func (s *search) connect(cmd *cobra.Command, unfenced bool) (*source, *opensearch.Client, error) {
	ctx := cmd.Context()
	p, err := s.route.find(cmd)
	if err != nil {
		return nil, nil, err
	}
	if p != nil {
		src, err := p.source(ctx, s.route.cli, unfenced)
		return src, p.built.Projection.Client, err
	}
	src, err := s.source(ctx, unfenced)
	if err != nil {
		return nil, nil, err
	}
	client, err := s.client(ctx)
	return src, client, err
}

// source is a table and what becomes of its items.
type source struct {
	cfg        aws.Config
	tables     []string
	project    func(*sluice.Record) ([]document.Op, error)
	markField  string // of documents that are versioned by sequence; else empty
	tombstones bool   // documents that have no item are no ghosts
	foreign    func(document.Doc) bool
	// forgetDeleted says that documents by sequence leave no tombstones.
	forgetDeleted bool
	store         *dynamodb.Store
	index         string                                   // template
	write         func(context.Context, document.Op) error // as the route does; nil: as writers of a reindex do
}

// marks are what an audit needs to know of documents by sequence; else nil.
func (s *source) marks(client *opensearch.Client) *audit.Marks {
	if s.markField == "" {
		return nil
	}
	m := &audit.Marks{Field: s.markField, ForgetDeleted: s.forgetDeleted, LeastVersion: docversion.Least}
	if !s.forgetDeleted {
		m.Tombstones = client.Indices().Marks(s.markField, false).Tombstones(client.ListMatching)
	}
	return m
}

// writer writes repairs.
func (s *source) writer(client *opensearch.Client) (func(context.Context, document.Op) error, error) {
	if s.write != nil {
		return s.write, nil
	}
	sink, err := opensearch.New(client, opensearch.Options{})
	if err != nil {
		return nil, err
	}
	return client.Indices().Follow(sink.Write), nil
}

// source needs all flags. unfenced takes what a backfill must not, without
// versions.
func (s *search) source(ctx context.Context, unfenced bool) (*source, error) {
	if err := missing("table", s.table, "index", s.index, "id", s.id); err != nil {
		return nil, err
	}
	if s.versions() != 1 {
		return nil, usage("want one of --version-attribute, --version-sequence and --unversioned, as the index is fed")
	}
	version, err := s.version()
	if err != nil {
		return nil, err
	}
	if s.unversioned && !unfenced {
		return nil, usage("--unversioned: nothing would keep an older state from standing; want --version-attribute or --version-sequence")
	}
	p, err := projection.New(nil, projection.Options{Index: s.index, ID: s.id, Version: version, UnfencedBackfill: unfenced})
	if err != nil {
		return nil, usage("%w", err)
	}
	services, _, err := s.route.cli.accountsMaybe(ctx, nil)
	if err != nil {
		return nil, err
	}
	cfg := services("dynamodb")
	store, err := dynamodb.New(cfg, dynamodb.Options{})
	if err != nil {
		return nil, err
	}
	field := ""
	if s.bySequence {
		field = projection.DefaultMark
	}
	project := p.Project
	if len(s.types) > 0 {
		project = s.ofTypes(project)
	}
	return &source{
		cfg: cfg, tables: []string{s.table}, index: s.index, project: project, markField: field, store: store,
		foreign: foreign([]owner{s.owner()}),
	}, nil
}

func (s *search) owner() owner {
	o := owner{id: fixedTexts(s.id), types: s.types}
	if len(s.types) > 0 {
		o.field = s.typeAttribute
	}
	return o
}

// ofTypes leaves out items of other types.
func (s *search) ofTypes(project func(*sluice.Record) ([]document.Op, error)) func(*sluice.Record) ([]document.Op, error) {
	resolver := router.Attribute(s.typeAttribute)
	return func(rec *sluice.Record) ([]document.Op, error) {
		typ, err := resolver.Type(rec)
		if err != nil || !slices.Contains(s.types, typ) {
			return nil, err
		}
		return project(rec)
	}
}

// scanTurn is how many items of a table are read before the next table's.
const scanTurn = 100

// scan reads the tables in turns, so that the first items are of all of them.
func (s *source) scan(ctx context.Context) iter.Seq2[*sluice.Record, error] {
	return func(yield func(*sluice.Record, error) bool) {
		var open []func() (*sluice.Record, error, bool)
		for _, table := range s.tables {
			next, stop := iter.Pull2(snapshot.Scan(ctx, s.cfg, table, snapshot.ScanOptions{}))
			defer stop()
			open = append(open, next)
		}
		for len(open) > 0 {
			next := open[0]
			open = open[1:]
			for range scanTurn {
				rec, err, ok := next()
				if ok && (!yield(rec, err) || err != nil) {
					return
				}
				if !ok {
					next = nil
					break
				}
			}
			if next != nil {
				open = append(open, next)
			}
		}
	}
}

// check reads the first items, so that a wrong name or a missing permission shows
// before anything is changed.
func (s *source) check(ctx context.Context) error {
	for _, table := range s.tables {
		for _, err := range snapshot.Scan(ctx, s.cfg, table, snapshot.ScanOptions{}) {
			if err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// list lists current documents, without sources. A missing index that items name
// by a template has no documents.
func list(client *opensearch.Client, template string) func(context.Context, string) iter.Seq2[document.Doc, error] {
	return func(ctx context.Context, index string) iter.Seq2[document.Doc, error] {
		return func(yield func(document.Doc, error) bool) {
			err := client.Indices().Refresh(ctx, index)
			var status *opensearch.StatusError
			if index != template && errors.As(err, &status) && status.Status == http.StatusNotFound {
				return
			}
			if err != nil {
				yield(document.Doc{}, err)
				return
			}
			client.ListIDs(ctx, index)(yield)
		}
	}
}
