package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/internal/reindex"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/sinks/sqs"
)

// sinks are the sinks of a file. Making a sink makes no call. Build checks the sinks
// that a route uses.
type sinks struct {
	c        *Config
	queues   map[string]*queue
	clusters map[string]*cluster

	source    account  // of the tables of source
	apart     *account // of the other tables of handlers; nil: the same
	at        Tables   // both, or their fake
	storeName string

	users                 []string // routes that ask for sinks now
	usedSinks, usedTables uses
}

// uses are the checks of sinks or tables that routes use, by what they are of.
type uses map[string]*SinkCheck

// Tables are the methods of tables that handlers call. A sinks/dynamodb.Store has all
// of them.
type Tables interface {
	Get(ctx context.Context, table string, key sluice.Item) (sluice.Item, error)
	Query(ctx context.Context, q dynamo.Query) (dynamo.Page, error)
	Once(ctx context.Context, u dynamo.Unit) (dynamo.Applied, error)
	Write(ctx context.Context, op dynamo.Op) error
	Transact(ctx context.Context, ops ...dynamo.Op) error
	DeleteGuarded(ctx context.Context, d dynamo.GuardedDelete)
	KeyNames(ctx context.Context, table string) ([]string, error)
}

type queue struct {
	*sqs.Queue
	send       func(ctx context.Context, m sluice.Message) error
	sink, name string // its own name or URL
	fifo       bool
}

type cluster struct {
	c        *Config
	sink     string
	o        *OpenSearch
	client   *opensearch.Client
	indices  *opensearch.Indices
	docs     *opensearch.Sink
	names    map[string]*opensearch.Marks // by index or alias; nil without version: sequence
	versions map[string]string            // version of the documents, by index or alias
	fake     writeDocument                // replaces docs in tests
}

func openSinks(c *Config, s Setup) (*sinks, error) {
	all := &sinks{c: c, queues: map[string]*queue{}, clusters: map[string]*cluster{}, storeName: "dynamodb", usedSinks: uses{}, usedTables: uses{}}
	var errs []error
	own := new(DynamoDB)
	for _, name := range slices.Sorted(maps.Keys(c.Sinks)) {
		sink := c.Sinks[name]
		field := "sinks." + name
		if sink.SQS != nil {
			q, err := openQueue(sink.SQS, name, s, s.Accounts.Within(s.AWS("sqs"), c.access(field+".sqs.aws", sink.SQS.AWS)))
			if err != nil {
				errs = append(errs, c.wrong(field+".sqs", err))
			}
			all.queues[name] = q
		}
		if sink.OpenSearch != nil {
			cl, err := openCluster(c, sink.OpenSearch, name, s, s.Accounts.Within(s.AWS("opensearch"), c.access(field+".opensearch.aws", sink.OpenSearch.AWS)))
			if err != nil {
				errs = append(errs, c.wrong(field+".opensearch", err))
			}
			all.clusters[name] = cl
		}
		if sink.DynamoDB != nil {
			own, all.storeName = sink.DynamoDB, name
		}
	}
	options := dynamodb.Options{
		Budget: own.Budget, InFlight: own.InFlight, Timeout: time.Duration(own.Timeout),
		Metrics: s.Metrics, Sink: all.storeName,
	}
	var err error
	all.source.cfg = s.AWS("dynamodb")
	if all.source.Store, err = dynamodb.New(all.source.cfg, options); err != nil {
		errs = append(errs, c.wrong("sinks."+all.storeName, err))
	}
	all.at = all.source.Store
	if own.AWS != nil {
		cfg := s.Accounts.Within(s.AWS(accounts.State), c.access("sinks."+all.storeName+".dynamodb.aws", own.AWS))
		store, err := dynamodb.New(cfg, options)
		if err != nil {
			errs = append(errs, c.wrong("sinks."+all.storeName, err))
		}
		all.apart, all.at = &account{cfg, store}, split{all}
	}
	if s.Fakes.Tables != nil {
		all.at = s.Fakes.Tables
	}
	return all, errors.Join(errs...)
}

func openQueue(o *SQS, name string, s Setup, cfg aws.Config) (*queue, error) {
	q, err := sqs.New(cfg, o.Queue, sqs.Options{
		InFlight: o.InFlight, Timeout: time.Duration(o.Timeout), Logger: s.Logger,
		DeduplicationIDs: true, // routes give each message an id
		Metrics:          s.Metrics, Sink: name,
	})
	if err != nil {
		return nil, err
	}
	made := &queue{Queue: q, send: q.Send, sink: name, name: o.Queue, fifo: o.fifo()}
	if send := s.Fakes.Send; send != nil {
		made.send = func(ctx context.Context, m sluice.Message) error { return send(ctx, o.Queue, m) }
	}
	return made, nil
}

func openCluster(c *Config, o *OpenSearch, name string, s Setup, cfg aws.Config) (*cluster, error) {
	at := opensearch.Connection{URLs: o.URLs, Username: o.Username, Password: o.Password, AllowPlainHTTP: o.AllowPlainHTTP, CAFile: o.CAFile, Service: o.Sign}
	if o.Sign != "" {
		at.AWS = &cfg
	}
	client, err := opensearch.Connect(at)
	if err != nil {
		return nil, err
	}
	docs, err := opensearch.New(client, opensearch.Options{
		InFlight: o.InFlight, MaxBytes: o.MaxBytes, MaxItems: o.MaxItems, Timeout: time.Duration(o.Timeout), Metrics: s.Metrics, Sink: name,
	})
	if err != nil {
		return nil, err
	}
	made := &cluster{c: c, sink: name, o: o, names: map[string]*opensearch.Marks{}, versions: map[string]string{}, client: client, indices: client.Indices(), docs: docs}
	if write := s.Fakes.Write; write != nil {
		made.fake = func(ctx context.Context, op document.Op) error { return write(ctx, name, op) }
	}
	return made, nil
}

// queue returns the queue of a sink, for a route that uses it.
func (s *sinks) queue(sink string) *queue {
	q := s.queues[sink]
	s.note(s.usedSinks, sink, "sinks."+sink, q.Check)
	return q
}

// cluster returns the cluster of a sink, for a route that uses it.
func (s *sinks) cluster(sink string) *cluster {
	cl := s.clusters[sink]
	s.note(s.usedSinks, sink, "sinks."+sink, cl.check)
	return cl
}

// use returns the tables, and notes that a handler at field uses the named ones.
func (s *sinks) use(field string, tables ...string) Tables {
	for _, table := range tables {
		s.note(s.usedTables, "table "+table, field, func(ctx context.Context) error { return s.of(table).Check(ctx, table) })
	}
	return s.at
}

// note notes a use of what check is of. The first use names its field.
func (s *sinks) note(used uses, of, field string, check func(context.Context) error) {
	if used[of] == nil {
		used[of] = &SinkCheck{Sink: of, Check: func(ctx context.Context) error {
			if err := check(ctx); err != nil {
				return s.c.wrong(field, err)
			}
			return nil
		}}
	}
	used[of].Routes = append(used[of].Routes, s.users...)
}

// checks are the checks of every sink in use. They also create indices.
func (s *sinks) checks() (all []SinkCheck) {
	for _, used := range []uses{s.usedSinks, s.usedTables} {
		for _, of := range slices.Sorted(maps.Keys(used)) {
			slices.Sort(used[of].Routes)
			used[of].Routes = slices.Compact(used[of].Routes)
			all = append(all, *used[of])
		}
	}
	return all
}

// check asks the cluster and creates its indices. OpenSearch Serverless does not answer
// at its root.
func (cl *cluster) check(ctx context.Context) error {
	if cl.o.Sign != "aoss" {
		if err := cl.client.Check(ctx); err != nil {
			return err
		}
	}
	if err := cl.apply(ctx); err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(cl.names)) {
		marks := cl.names[name]
		if marks == nil {
			errs = append(errs, cl.indices.CheckUnmarked(ctx, name))
		} else {
			errs = append(errs, marks.Check(ctx, name))
		}
	}
	return errors.Join(errs...)
}

// apply creates the indices of the sink's files.
func (cl *cluster) apply(ctx context.Context) error {
	if len(cl.o.Indices) == 0 {
		return nil
	}
	files, called := make(folder), map[string]string{}
	for _, index := range cl.o.Indices {
		if err := cl.read(index, files, called); err != nil {
			return fmt.Errorf("index %s: %w", index.Alias, err)
		}
	}
	return cl.indices.Apply(ctx, files, opensearch.IndexOptions{Called: called, Marks: cl.names})
}

// read adds the file of an index to files, and its path to called.
func (cl *cluster) read(index Index, files folder, called map[string]string) (err error) {
	file, name := cl.c.file(index.File), index.Alias+".json"
	files[name], err = os.ReadFile(file)
	called["indices/"+name] = file
	return err
}

// IndexBody returns what a new index behind the alias is made of, by the file that the
// sink has for it; nil if it has none.
func (p *Projected) IndexBody() ([]byte, error) {
	alias := p.Options.Index
	i := slices.IndexFunc(p.cluster.o.Indices, func(index Index) bool { return index.Alias == alias })
	if i < 0 {
		return nil, nil
	}
	files, called := make(folder), map[string]string{}
	if err := p.cluster.read(p.cluster.o.Indices[i], files, called); err != nil {
		return nil, err
	}
	return opensearch.IndexBody(files, alias, opensearch.IndexOptions{Called: called, Marks: p.cluster.names})
}

// writer returns the function that writes documents to the index behind an alias.
// During a reindex it writes to both indices.
func (cl *cluster) writer(tombstones bool) writeDocument {
	if cl.fake != nil {
		return cl.fake
	}
	w := reindex.Writer{Write: cl.docs.Write, Behind: cl.indices.Behind}
	if tombstones {
		// A tombstone is written like a document. Follow sends them to the indices of
		// deletions, too: some seconds earlier than necessary.
		w.Deletes = func(document.Op) bool { return true }
	}
	if cl.o.RequireAlias {
		w.Behind = func(ctx context.Context, aliases ...string) (map[string][]string, error) {
			behind, err := cl.indices.Behind(ctx, aliases...)
			if err == nil && len(behind[aliases[0]]) == 0 {
				err = fmt.Errorf("opensearch: there is no alias %s, and requireAlias writes to no other name", aliases[0])
			}
			return behind, err
		}
	}
	return w.New()
}

// folder has the folder "indices" that Indices.Apply reads, with files by their names.
type folder map[string][]byte

func (f folder) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (f folder) ReadFile(name string) ([]byte, error) {
	if dir, base := path.Split(name); dir == "indices/" && f[base] != nil {
		return f[base], nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (f folder) ReadDir(name string) ([]fs.DirEntry, error) {
	if name != "indices" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	var entries []fs.DirEntry
	for _, name := range slices.Sorted(maps.Keys(f)) {
		entries = append(entries, entry(name))
	}
	return entries, nil
}

// entry is the name of a file.
type entry string

func (e entry) Name() string               { return string(e) }
func (e entry) IsDir() bool                { return false }
func (e entry) Type() fs.FileMode          { return 0 }
func (e entry) Info() (fs.FileInfo, error) { return nil, fs.ErrInvalid }
