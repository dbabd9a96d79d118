//go:build integration

package meadowlark

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/tally"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/item/sdkitem"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
)

// local is a table and indices on real servers, and the stream between them.
type local struct {
	t       *testing.T
	store   *dynamodb.Store
	client  *opensearch.Client
	table   string
	prefix  string
	router  *router.Router
	indices Indices

	mu      sync.Mutex
	alerts  []string
	dropped []string
	counts  tally.Tally
	parked  []error
	handled map[string]int // by route
}

func newLocal(t *testing.T, url string) *local {
	t.Helper()
	cfg := localtest.DynamoDB(t)
	l := &local{t: t, table: localtest.Name("meadowlark"), prefix: localtest.Name("t") + "-", handled: map[string]int{}}
	if err := Create(t.Context(), cfg, l.table); err != nil {
		t.Fatal(err)
	}
	var err error
	if l.store, err = dynamodb.New(cfg, dynamodb.Options{Attempts: 30, Backoff: 5 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if l.client, err = opensearch.Connect(opensearch.Connection{URLs: []string{url}}); err != nil {
		t.Fatal(err)
	}
	l.indices = Indices{Call: l.client.Call, Prefix: l.prefix}
	if err := l.indices.Install(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.drop(awsdynamodb.NewFromConfig(cfg)) })
	sink, err := opensearch.New(l.client, opensearch.Options{Metrics: &l.counts})
	if err != nil {
		t.Fatal(err)
	}
	l.router, err = NewRouter(Deps{
		Store: l.store, Table: l.table, Resources: Resources(), Write: sink.Write, IndexPrefix: l.prefix,
		Alert:   func(_ context.Context, m sluice.Message) error { note(l, &l.alerts, m.Body); return nil },
		Check:   func(context.Context, sluice.Message) error { return nil },
		Dropped: func(_, field string) { note(l, &l.dropped, field) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func note[T any](l *local, list *[]T, v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*list = append(*list, v)
}

func noted[T any](l *local, list *[]T) []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(*list)
}

// drop removes what the test has made. Its own context has ended by now.
func (l *local) drop(db *awsdynamodb.Client) {
	ctx := context.Background()
	if _, err := db.DeleteTable(ctx, &awsdynamodb.DeleteTableInput{TableName: &l.table}); err != nil {
		l.t.Error(err)
	}
	if err := l.client.Call(ctx, "DELETE", l.indices.path(), nil, nil); err != nil {
		l.t.Error(err)
	}
	for _, name := range l.names(ctx) {
		if err := l.client.Call(ctx, "DELETE", "/"+url.PathEscape(name), nil, nil); err != nil {
			l.t.Error(err)
		}
	}
}

// names are those of the indices.
func (l *local) names(ctx context.Context) (names []string) {
	l.t.Helper()
	var indices map[string]any
	if err := l.client.Call(ctx, "GET", "/"+l.prefix+"*", nil, &indices); err != nil {
		l.t.Fatal(err)
	}
	for name := range indices {
		names = append(names, name)
	}
	return names
}

// poll reads the stream until the test ends.
func (l *local) poll() {
	l.t.Helper()
	p, err := poller.New(localtest.DynamoDB(l.t), l.router, poller.Options{
		Streams: []poller.Stream{{Table: l.table}},
		Store:   state.NewMemory(),
		Start:   poller.TrimHorizon,
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
		Flow: flow.Options{Hooks: flow.Hooks{Handled: func(_ context.Context, _ *sluice.Record, route *sluice.Route, _ flow.Result, _ time.Duration, err error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if route != nil && (err == nil || sluice.IsSkip(err)) {
				l.handled[route.Name]++
			} else if sluice.IsPermanent(err) {
				l.parked = append(l.parked, err)
			}
		}}},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(l.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	l.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			l.t.Error(err)
		}
	})
}

// wait waits until a route has handled so many records in all.
func (l *local) wait(route string, n int) {
	l.t.Helper()
	localtest.Await(l.t, route, func() string {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.handled[route] >= n {
			return ""
		}
		return string(mustJSON(l.handled))
	})
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func (l *local) put(items ...sluice.Item) {
	l.t.Helper()
	for _, it := range items {
		if err := l.store.Write(l.t.Context(), dynamo.Put(l.table, it)); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *local) delete(it sluice.Item) {
	l.t.Helper()
	if err := l.store.Write(l.t.Context(), dynamo.Delete(l.table, it.Only("pk", "sk"))); err != nil {
		l.t.Fatal(err)
	}
}

// doc is a document of an index without its prefix.
func (l *local) doc(index, id string) document.Doc {
	l.t.Helper()
	docs, err := get(l.t.Context(), l.client, l.prefix+index, id)
	if err != nil {
		l.t.Fatal(err)
	}
	return docs
}

func get(ctx context.Context, c *opensearch.Client, index, id string) (document.Doc, error) {
	var answer struct {
		Docs []struct {
			Found   bool            `json:"found"`
			Version int64           `json:"_version"`
			Source  json.RawMessage `json:"_source"`
		} `json:"docs"`
	}
	in := map[string]any{"docs": []any{map[string]string{"_index": index, "_id": id}}}
	err := c.Call(ctx, "POST", "/_mget", in, &answer)
	d := document.Doc{Ref: document.Ref{Index: index, ID: id}}
	if err == nil {
		d.Found, d.Version, d.Source = answer.Docs[0].Found, answer.Docs[0].Version, answer.Docs[0].Source
	}
	return d, err
}

// entity is an item of a document.
func (l *local) entity(typ, id, rev, info string) sluice.Item {
	l.t.Helper()
	v, err := item.FromJSON([]byte(info))
	if err != nil {
		l.t.Fatal(err)
	}
	return writer.EntityKey(typ, id).With(item.Number("rev", rev), item.Map("info", v))
}

// scan reads the whole table.
func (l *local) scan() iter.Seq2[sluice.Item, error] {
	return func(yield func(sluice.Item, error) bool) {
		pages := awsdynamodb.NewScanPaginator(awsdynamodb.NewFromConfig(localtest.DynamoDB(l.t)), &awsdynamodb.ScanInput{TableName: &l.table})
		for pages.HasMorePages() {
			out, err := pages.NextPage(l.t.Context())
			if err != nil {
				yield(sluice.Item{}, err)
				return
			}
			for _, attrs := range out.Items {
				it, err := sdkitem.FromMap(attrs)
				if !yield(it, err) {
					return
				}
			}
		}
	}
}
