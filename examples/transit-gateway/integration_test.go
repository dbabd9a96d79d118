//go:build integration

package transitgateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	randv2 "math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// city has tables and an index of the test's own, on servers, and a poller that
// reads the streams. The janitor's messages stay with the test.
type city struct {
	*Gateways
	t      *testing.T
	store  *dynamodb.Store
	client *opensearch.Client
	index  string
	router *router.Router

	ahead   atomic.Int64 // ns that the routes' clock is ahead of the machine's
	handled atomic.Int64 // records, by each of their routes
	stale   float64      // how often an old record is handled again beside one

	mu       sync.Mutex
	messages []sluice.Message
	records  []*sluice.Record
}

func newCity(t *testing.T, url string, stale float64) *city {
	t.Helper()
	cfg := localtest.DynamoDB(t)
	name := localtest.Name("gateway")
	c := &city{t: t, index: name, stale: stale}
	prefix := name + "_"
	for range 2 { // the second time they are there
		if err := Create(t.Context(), cfg, prefix); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if c.client, err = opensearch.Connect(opensearch.Connection{URLs: []string{url}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := CreateIndex(t.Context(), c.client, c.index, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := CheckIndex(t.Context(), c.client, c.index); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the test's own context has ended by now
		db := awsdynamodb.NewFromConfig(cfg)
		for _, s := range schemas {
			name := prefix + s.Name
			if _, err := db.DeleteTable(context.Background(), &awsdynamodb.DeleteTableInput{TableName: &name}); err != nil {
				t.Error(err)
			}
		}
		if err := c.client.Call(context.Background(), http.MethodDelete, "/"+c.index, nil, nil); err != nil {
			t.Error(err)
		}
	})
	if c.store, err = dynamodb.New(cfg, dynamodb.Options{}); err != nil {
		t.Fatal(err)
	}
	documents, err := opensearch.New(c.client, opensearch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Gateways = New(c.store, prefix, nil)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	c.router, err = NewRouter(Deps{
		Store: c.store, Prefix: prefix, Write: documents.Write, Index: c.index, Logger: quiet,
		Now: func() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) },
		Send: func(_ context.Context, m sluice.Message) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			m.ID = fmt.Sprint("m", len(c.messages))
			c.messages = append(c.messages, m)
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := poller.Options{Application: "test", Store: state.NewMemory(), Start: poller.TrimHorizon, Logger: quiet}
	for _, name := range Tables(prefix) {
		o.Streams = append(o.Streams, poller.Stream{Table: name})
	}
	p, err := poller.New(cfg, c.again(c.router), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
}

// again handles every third record twice, and beside some records an old one of
// any item, as a redelivery or a redrive does.
func (c *city) again(m sluice.Matcher) sluice.Matcher {
	for _, rt := range m.Routes() {
		h := rt.Handler
		var mu sync.Mutex
		var old []*sluice.Record
		rt.Handler = func(ctx context.Context, rec *sluice.Record) error {
			again := []*sluice.Record{rec}
			if randv2.IntN(3) == 0 {
				again = append(again, rec)
			}
			mu.Lock()
			old = append(old, rec.Clone())
			if randv2.Float64() < c.stale {
				again = append(again, old[randv2.IntN(len(old))])
			}
			mu.Unlock()
			for _, rec := range again {
				if err := h(ctx, rec); err != nil && !sluice.IsSkip(err) {
					return err
				}
			}
			c.handled.Add(1)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.records = append(c.records, rec.Clone())
			return nil
		}
	}
	return m
}

// until waits as long as records are handled.
func (c *city) until(what string, wrong func() string) {
	c.t.Helper()
	localtest.Await(c.t, what, func() string {
		handled := c.handled.Load()
		if s := wrong(); s != "" {
			return fmt.Sprintf("%s; %d handled", s, handled)
		}
		return ""
	})
}

func (c *city) put(fixtures ...Fixture) {
	c.t.Helper()
	for _, f := range fixtures {
		if err := c.store.Put(c.t.Context(), c.table(f.Table), f.Item); err != nil {
			c.t.Fatal(err)
		}
	}
}

// document is one of the index, with its version before it; "" when there is
// none.
func (c *city) document(id string) string {
	c.t.Helper()
	var got struct {
		Version int64           `json:"_version"`
		Source  json.RawMessage `json:"_source"`
	}
	err := c.client.Call(c.t.Context(), http.MethodGet, "/"+c.index+"/_doc/"+url.PathEscape(id), nil, &got)
	if refused, ok := errors.AsType[*opensearch.StatusError](err); ok && refused.Status == http.StatusNotFound {
		return ""
	}
	if err != nil {
		return err.Error()
	}
	return shown(document.Doc{Version: got.Version, Source: got.Source})
}

// documents are all of the index.
func (c *city) documents() (map[string]string, error) {
	if err := c.client.Call(c.t.Context(), http.MethodPost, "/"+c.index+"/_refresh", nil, nil); err != nil {
		return nil, err
	}
	var got struct {
		Hits struct {
			Hits []struct {
				ID      string          `json:"_id"`
				Version int64           `json:"_version"`
				Source  json.RawMessage `json:"_source"`
			}
		}
	}
	if err := c.client.Call(c.t.Context(), http.MethodPost, "/"+c.index+"/_search?version=true&size=10000", nil, &got); err != nil {
		return nil, err
	}
	docs := make(map[string]string)
	for _, h := range got.Hits.Hits {
		docs[h.ID] = shown(document.Doc{Version: h.Version, Source: h.Source})
	}
	return docs, nil
}

// rows are those of route tables.
func (c *city) rows(rtbs ...string) (live, all string, err error) {
	var rows []sluice.Item
	for _, rtb := range rtbs {
		for it, err := range dynamo.All(c.t.Context(), c.store.Query, dynamo.Query{Table: c.table("tgw_by_rtb"), Partition: item.String("rtb_id", rtb)}) {
			if err != nil {
				return "", "", err
			}
			rows = append(rows, it)
		}
	}
	live, all = summary(rows)
	return live, all, nil
}

// difference says how index and rows differ from the table.
func (c *city) difference(rtbs ...string) string {
	gateways, err := c.OfOwner(c.t.Context(), owner)
	if err != nil {
		return err.Error()
	}
	var items []sluice.Item
	for _, g := range gateways {
		items = append(items, g.item())
	}
	want, live := expected(items)
	got, err := c.documents()
	if err != nil {
		return err.Error()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return "the index: " + diff
	}
	rows, _, err := c.rows(rtbs...)
	if err != nil || rows != strings.Join(live, ", ") {
		return fmt.Sprintf("by route table %s, %v; want %s", rows, err, live)
	}
	return ""
}

func TestReadsOfTables(t *testing.T) {
	c := newCity(t, localtest.OpenSearchURL(t), 0)
	c.put(readFixtures()...)
	checkReads(t, c.Gateways)
}

// An index that is not there, or was made by the first document that came, is
// named before anything is written.
func TestCheckIndex(t *testing.T) {
	url := localtest.OpenSearchURL(t)
	client, err := opensearch.Connect(opensearch.Connection{URLs: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	name := localtest.Name("gateway")
	check := func(want string) {
		t.Helper()
		if err := CheckIndex(t.Context(), client, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	check("index " + name + " (TGW_INDEX) does not exist at " + url + ": run `transit-gateway create`")
	settings := map[string]any{"settings": map[string]any{"number_of_replicas": 0}}
	if err := client.Call(t.Context(), http.MethodPut, "/"+name, settings, nil); err != nil {
		t.Fatal(err)
	}
	check(`index ` + name + ` maps the field created_at as "", want "date"`)
	if err := client.Call(t.Context(), http.MethodDelete, "/"+name, nil, nil); err != nil {
		t.Fatal(err)
	}
}

// From the fixtures to a gateway that is made again.
func TestFixturesOnServers(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		c := newCity(t, url, 0.2)
		ctx := t.Context()
		const id = owner + "|tgw-0a1"
		is := func(what, document, rows string) {
			t.Helper()
			c.until(what, func() string {
				_, all, err := c.rows("rtb-1", "rtb-2")
				if got := c.document(id); got != document || all != rows || err != nil {
					return fmt.Sprintf("document %s, want %s; rows %s, %v; want %s", got, document, all, err, rows)
				}
				return ""
			})
		}
		v2, _ := expected([]sluice.Item{Fixtures()[2].Item})
		if !strings.HasPrefix(v2[id], "1786946146795520002 {") {
			t.Fatal(v2)
		}
		c.put(Fixtures()...)
		is("the fixtures", v2[id], hubRows)

		v1 := c.record("tgw-0a1", 1)
		if err := c.router.Dispatch(ctx, v1); err != nil {
			t.Error(err)
		}
		is("V1 after V2", v2[id], hubRows)

		c.janitor()
		for name, want := range map[string]bool{"hub": true, "lost": false} {
			it, err := c.store.Get(ctx, c.table("tgw_name"), item.Of(item.String("name_key", owner+"#"+name)))
			if it.Exists() != want || err != nil {
				t.Errorf("claim of %s: %v, %v", name, it.Exists(), err)
			}
		}

		// Two writers save from one version.
		var wg sync.WaitGroup
		var saved, conflicts atomic.Int64
		g, _, err := c.Gateway(ctx, owner, "tgw-0a1")
		if err != nil {
			t.Fatal(err)
		}
		for _, rtb := range []string{"rtb-1", "rtb-2"} {
			g := g
			g.RouteTables = []string{rtb}
			wg.Go(func() {
				switch err := c.SaveUpdate(ctx, &g); {
				case errors.Is(err, ErrVersionConflict):
					conflicts.Add(1)
				case err == nil:
					saved.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if saved.Load() != 1 || conflicts.Load() != 1 {
			t.Errorf("%d saved, %d conflicts", saved.Load(), conflicts.Load())
		}
		c.until("the save", func() string { return c.difference("rtb-1", "rtb-2") })

		if g, _, err = c.Gateway(ctx, owner, "tgw-0a1"); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(ctx, &g); err != nil {
			t.Fatal(err)
		}
		c.until("the deletion", func() string { return c.difference("rtb-1", "rtb-2") })
		later := New(c.store, c.prefix, func() time.Time { return time.UnixMilli(1704168245000) })
		again := hub()
		if err := later.SaveNew(ctx, &again); err != nil {
			t.Fatal(err)
		}
		c.until("the gateway that is made again", func() string { return c.difference("rtb-1", "rtb-2") })
		if got := c.document(id); !strings.HasPrefix(got, "1786949921669120000 {") {
			t.Error(got)
		}
	})
}

// record returns a handled record of a version of a gateway.
func (c *city) record(id string, version int64) *sluice.Record {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.records, func(rec *sluice.Record) bool {
		n, _ := kit.Number(rec.New, "version")
		return kit.Text(rec.Keys, "tgw_id") == id && n == version
	})
	if i < 0 {
		c.t.Fatalf("no record of version %d of %s was handled", version, id)
	}
	return c.records[i]
}

// janitor is handed its messages when they are due, twice.
func (c *city) janitor() {
	c.t.Helper()
	c.until("the messages of two claims", func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		keys := make(map[string]bool)
		for _, m := range c.messages {
			keys[m.Attributes["dedupeKey"].Value] = true
		}
		if len(keys) < 2 {
			return fmt.Sprint(keys)
		}
		return ""
	})
	c.mu.Lock()
	messages := slices.Concat(c.messages, c.messages)
	c.mu.Unlock()
	for _, ahead := range []time.Duration{0, CheckAfter} {
		c.ahead.Store(int64(ahead))
		for _, m := range messages {
			if err := c.router.Dispatch(c.t.Context(), m.Record("arn:aws:sqs:us-east-1:000000000000:janitor")); err != nil && !sluice.IsSkip(err) {
				c.t.Error(err)
			}
		}
		lost, err := c.store.Get(c.t.Context(), c.table("tgw_name"), item.Of(item.String("name_key", owner+"#lost")))
		if err != nil || lost.Exists() != (ahead == 0) {
			c.t.Errorf("after %v: the claim is there: %v, %v", ahead, lost.Exists(), err)
		}
	}
}

// race lets writers create, save and delete a few gateways, until so many were
// created. now is called after each creation, with how many there were.
func (c *city) race(creations int64, now func(created int64)) {
	c.t.Helper()
	var created atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for created.Load() < creations && !c.t.Failed() {
				id := fmt.Sprint("tgw-", randv2.IntN(12))
				g, found, err := c.Gateway(c.t.Context(), owner, id)
				if err != nil {
					c.t.Error(err)
					return
				}
				g.RouteTables = [][]string{nil, {"rtb-1"}, {"rtb-2"}, {"rtb-1", "rtb-2"}}[randv2.IntN(4)]
				switch {
				case !found:
					g.OwnerID, g.ID, g.Name = owner, id, "name of "+id
					if err = c.SaveNew(c.t.Context(), &g); err == nil {
						now(created.Add(1))
					}
				case randv2.IntN(4) == 0:
					err = c.SaveUpdate(c.t.Context(), &g)
				default:
					err = c.Delete(c.t.Context(), &g)
				}
				if err != nil && !errors.Is(err, ErrVersionConflict) && !errors.Is(err, ErrNameTaken) {
					c.t.Log(err) // whether it was done is unknown; it is read again
				}
			}
		})
	}
	wg.Wait()
}

// Gateways are created and deleted many times, by several writers at once, while old
// records come again, and for a while nobody reaches OpenSearch: in the end the index
// equals the table, without documents of deleted gateways.
func TestRaces(t *testing.T) {
	proxy := streamtest.NewProxy(t, localtest.OpenSearchURL(t))
	c := newCity(t, proxy.URL(), 0.2)
	var back func()
	c.race(30, func(created int64) {
		if created == 10 {
			back = proxy.Fail(streamtest.ProxyFault{Drop: true})
		}
	})
	back()
	c.settle()
}

// settle waits until the index equals the table, then deletes everything.
func (c *city) settle() {
	c.t.Helper()
	c.until("index and rows", func() string { return c.difference("rtb-1", "rtb-2") })
	all, err := c.OfOwner(c.t.Context(), owner)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, g := range all {
		if err := c.Delete(c.t.Context(), &g); err != nil {
			c.t.Fatal(err)
		}
	}
	c.until("an empty index", func() string { return c.difference("rtb-1", "rtb-2") })
}
