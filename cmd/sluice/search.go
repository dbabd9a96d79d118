package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/document"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/sinks/opensearch/indices"
	"github.com/sluicehq/sluice/sources/snapshot"
)

const searchHelp = `The cluster is --opensearch, or $SLUICE_ENDPOINT_OPENSEARCH. OPENSEARCH_USERNAME
and OPENSEARCH_PASSWORD let in; --sign es (OpenSearch Service) or --sign aoss
(OpenSearch Serverless) signs with the credentials of AWS instead.
SLUICE_ENDPOINT_DYNAMODB leads to another DynamoDB.`

// search has the flags of a cluster and of what is projected into it.
type search struct {
	env func(string) string

	url, caFile, sign string
	table, id, by     string
	index             string
}

func (s *search) addConnection(f *pflag.FlagSet) {
	f.StringVar(&s.url, "opensearch", "", "`URL` of the cluster ($SLUICE_ENDPOINT_OPENSEARCH; default http://127.0.0.1:9200)")
	f.StringVar(&s.caFile, "opensearch-ca", "", "`file` of certificates that are trusted, too")
	f.StringVar(&s.sign, "sign", "", "sign requests for `service`: es or aoss")
}

func (s *search) addProjection(f *pflag.FlagSet) {
	f.StringVar(&s.table, "table", "", "`name` of the table")
	f.StringVar(&s.id, "id", "", "`template` of a document's id, as in the projection, such as {id}")
	f.StringVar(&s.by, "version-by", "", "attribute=`name`, sequence or none, as in the projection")
}

// client connects; no request is made.
func (s *search) client(ctx context.Context) (*opensearch.Client, error) {
	c := opensearch.Connection{CAFile: s.caFile, Service: s.sign, Username: s.env("OPENSEARCH_USERNAME"), Password: s.env("OPENSEARCH_PASSWORD")}
	if url := s.url; url != "" {
		c.URLs = []string{url}
	} else if url := s.env("SLUICE_ENDPOINT_OPENSEARCH"); url != "" {
		c.URLs = []string{url}
	}
	if s.sign != "" {
		cfg, err := config.LoadDefaultConfig(ctx)
		if err != nil {
			return nil, fmt.Errorf("AWS configuration: %w", err)
		}
		c.AWS = &cfg
	}
	client, err := opensearch.Connect(c)
	if err != nil {
		return nil, &run.UsageError{Err: err}
	}
	return client, nil
}

// missing says which of the flags that are needed are empty.
func missing(flags ...string) error {
	var errs []error
	for i := 0; i < len(flags); i += 2 {
		if flags[i+1] == "" {
			errs = append(errs, fmt.Errorf("--%s is missing", flags[i]))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return &run.UsageError{Err: err}
	}
	return nil
}

// source is a table and what becomes of its items.
type source struct {
	cfg        aws.Config
	table      string
	project    func(*sluice.Record) ([]document.Op, error)
	noVersions bool // a SNAPSHOT's version tells nothing
	store      *dynamodb.Store
}

// source needs all flags. unfenced takes what a backfill must not, without
// versions.
func (s *search) source(ctx context.Context, unfenced bool) (*source, error) {
	if err := missing("table", s.table, "index", s.index, "id", s.id, "version-by", s.by); err != nil {
		return nil, err
	}
	o := projection.Options{Index: s.index, ID: s.id, UnfencedBackfill: unfenced}
	name, isAttribute := strings.CutPrefix(s.by, "attribute=")
	switch {
	case isAttribute && name != "":
		o.Version = projection.ByAttribute(name)
	case s.by == "sequence":
		o.Version = projection.BySequence()
	case s.by == "none" && unfenced:
		o.Version = projection.Unversioned()
	case s.by == "none":
		return nil, &run.UsageError{Err: errors.New("--version-by none: nothing would keep an older state from standing; want attribute=name or sequence")}
	default:
		return nil, &run.UsageError{Err: fmt.Errorf("--version-by: %q is not one of attribute=name, sequence, none", s.by)}
	}
	p, err := projection.New(nil, o)
	if err != nil {
		return nil, &run.UsageError{Err: err}
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if url := s.env("SLUICE_ENDPOINT_DYNAMODB"); url != "" {
		cfg.BaseEndpoint = &url
	}
	store, err := dynamodb.New(cfg, dynamodb.Options{})
	if err != nil {
		return nil, err
	}
	return &source{cfg: cfg, table: s.table, project: p.Project, noVersions: s.by == "sequence", store: store}, nil
}

func (s *source) scan(ctx context.Context) iter.Seq2[*sluice.Record, error] {
	return snapshot.Scan(ctx, s.cfg, s.table, snapshot.ScanOptions{})
}

// list lists what is there now, without sources.
func list(client *opensearch.Client) func(context.Context, string) iter.Seq2[document.Doc, error] {
	return func(ctx context.Context, index string) iter.Seq2[document.Doc, error] {
		return func(yield func(document.Doc, error) bool) {
			if err := indices.New(client).Refresh(ctx, index); err != nil {
				yield(document.Doc{}, err)
				return
			}
			client.ListIDs(ctx, index)(yield)
		}
	}
}
