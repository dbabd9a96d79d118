//go:build integration

package estuve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// newTables makes tables of the test's own.
func newTables(t *testing.T) (Tables, *dynamodb.Store) {
	t.Helper()
	cfg := localtest.DynamoDB(t)
	tables := Named(localtest.Name("estuve") + "-")
	for range 2 { // the second time they are there
		if err := Create(t.Context(), cfg, tables); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		db := awsdynamodb.NewFromConfig(cfg)
		for name := range tables.Keys() {
			if _, err := db.DeleteTable(context.Background(), &awsdynamodb.DeleteTableInput{TableName: &name}); err != nil {
				t.Error(err)
			}
		}
	})
	return tables, openStore(t, cfg, tables)
}

func openStore(t *testing.T, cfg aws.Config, tables Tables) *dynamodb.Store {
	t.Helper()
	store, err := OpenStore(cfg, func(string) string { return "" }, tables, nil)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func putAll(t *testing.T, store *dynamodb.Store, fixtures ...Fixture) {
	t.Helper()
	for _, f := range fixtures {
		if err := store.Put(t.Context(), f.Table, f.Item); err != nil {
			t.Fatal(err)
		}
	}
}

// stateOf returns the tables' items of the fixtures.
func stateOf(t *testing.T, store *dynamodb.Store, tables Tables) string {
	t.Helper()
	all := func(table, name, value string) (items []sluice.Item) {
		for it, err := range dynamo.All(t.Context(), store.Query, dynamo.Query{Table: table, Partition: item.String(name, value)}) {
			if err != nil {
				t.Fatal(err)
			}
			items = append(items, it)
		}
		return items
	}
	points := append(all(tables.Points, "map_id", "m-1"), all(tables.Points, "map_id", "m-2")...)
	return summary(all(tables.Users, "user_id", "u-1"), all(tables.Maps, "user_id", "u-1"), points)
}

func TestReadsOfTables(t *testing.T) {
	tables, store := newTables(t)
	putAll(t, store, Fixtures(tables)...)
	putAll(t, store, Fixture{Table: tables.Users, Item: parse(`{"user_id":{"S":"u-2"}}`)}, Fixture{Table: tables.Maps, Item: parse(`{"user_id":{"S":"u-2"},"map_id":{"S":"m-3"},"name":{"S":"Moor"}}`)})
	checkReads(t, Reads{Tables: tables, Store: store})
}

func TestRecountOfTables(t *testing.T) {
	tables, store := newTables(t)
	putAll(t, store, Written(tables)...) // counted by nobody
	found := 0
	r := Recounter{Tables: tables, Store: store, Settle: time.Millisecond, Found: func(rollup.Correction) { found++ }}
	users := func(yield func(string) bool) { yield("u-1") }
	if done, err := r.Run(t.Context(), users); err != nil || done != (rollup.Recounted{Parents: 4, Corrected: 4}) || found != 4 {
		t.Errorf("%+v, %v", done, err)
	}
	if got := stateOf(t, store, tables); got != stateWhole {
		t.Error(got)
	}
	op := dynamo.Update(tables.Maps, parse(deleteM1), "SET #n = :n").Name("#n", "num_points").Value(":n", 9)
	if err := store.Write(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	if done, err := r.Run(t.Context(), users); err != nil || done != (rollup.Recounted{Parents: 4, Right: 3, Corrected: 1}) {
		t.Errorf("%+v, %v", done, err)
	}
	if got := stateOf(t, store, tables); got != stateWhole {
		t.Error(got)
	}
}

// The fixtures are written, m-1 is deleted, and the streams do the rest, by an
// ordinary poller: also with every record handled three times, with 30 % of the
// deletes left unprocessed, and by the queue.
func TestTotals(t *testing.T) { each(t, testTotals) }

func testTotals(t *testing.T, by way) {
	discount := map[string]int{"count maps": 3, "delete points": 1, "discount points": 3}
	if by.name == "yaml" { // one route counts both ways
		discount = map[string]int{"count maps": 3, "delete points": 1, "count points": 8}
	}
	for _, tt := range []struct {
		name        string
		times       int
		unprocessed float64
		threshold   int
	}{
		{"once", 1, 0, 500},
		{"three times", 3, 0, 500},
		{"unprocessed", 1, 0.3, 500},
		{"three times, unprocessed, by the queue", 3, 0.3, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tables, direct := newTables(t)
			cfg := localtest.DynamoDB(t)
			if tt.unprocessed > 0 {
				proxy := streamtest.NewProxy(t, *cfg.BaseEndpoint)
				proxy.Fail(streamtest.Unprocessed(tt.unprocessed, 1))
				cfg.BaseEndpoint = aws.String(proxy.URL())
			}
			var queue queue
			r := by.router(t, Deps{
				Tables: tables, Store: openStore(t, cfg, tables), Send: queue.send, Threshold: tt.threshold,
				Logger: slog.New(slog.DiscardHandler),
			}, strings.TrimSuffix(tables.Users, "users"))
			for _, rt := range r.Routes() {
				rt.Handler = times(tt.times)(rt.Handler)
			}
			queue.dispatch = r.Dispatch

			putAll(t, direct, Written(tables)...)
			stop, settled := poll(t, r, tables)
			settled(map[string]int{"count maps": 2, "count points": 5})
			if got := stateOf(t, direct, tables); got != stateWhole {
				t.Errorf("after the inserts: %s", got)
			}
			if err := direct.Delete(t.Context(), tables.Maps, parse(deleteM1)); err != nil {
				t.Fatal(err)
			}
			settled(discount)
			stop()
			queue.working.Wait()
			if got := stateOf(t, direct, tables); got != stateLess {
				t.Errorf("after the deletion: %s", got)
			}
			if want := 2 * tt.times; tt.threshold == 0 && len(queue.sent) < want { // a message and a sweep
				t.Errorf("sent %q", queue.sent)
			}
		})
	}
}

// times handles each record so many times.
func times(n int) sluice.Middleware {
	return func(next sluice.Handler) sluice.Handler {
		return func(ctx context.Context, rec *sluice.Record) error {
			for range n - 1 {
				if err := next(ctx, rec); err != nil && !sluice.IsSkip(err) {
					return err
				}
			}
			return next(ctx, rec)
		}
	}
}

// queue hands messages to a worker beside it, at once.
type queue struct {
	dispatch sluice.Handler
	working  sync.WaitGroup
	mu       sync.Mutex
	sent     []string
}

func (q *queue) send(ctx context.Context, m sluice.Message) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sent = append(q.sent, m.Body)
	m.ID = fmt.Sprint("m-", len(q.sent))
	ctx = context.WithoutCancel(ctx)
	q.working.Go(func() {
		for {
			err := q.dispatch(ctx, m.Record("arn:aws:sqs:us-east-1:000000000000:cascades"))
			if err == nil || sluice.IsSkip(err) || sluice.IsPermanent(err) {
				return
			}
		}
	})
	return nil
}

// poll reads the streams. settled waits until routes have handled so many
// records.
func poll(t *testing.T, r sluice.Matcher, tables Tables) (stop func(), settled func(map[string]int)) {
	t.Helper()
	var mu sync.Mutex
	handled := map[string]int{}
	var failed []string
	p, err := poller.New(localtest.DynamoDB(t), r, poller.Options{
		Streams: []poller.Stream{{Table: tables.Users}, {Table: tables.Maps}, {Table: tables.Points}},
		Store:   state.NewMemory(),
		Start:   poller.TrimHorizon,
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
		Flow: flow.Options{Hooks: flow.Hooks{Handled: func(_ context.Context, _ *sluice.Record, route *sluice.Route, res flow.Result, _ time.Duration, err error) {
			if route == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil || sluice.IsSkip(err) {
				handled[route.Name]++
			} else {
				failed = append(failed, err.Error())
			}
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return stop, func(want map[string]int) {
		t.Helper()
		localtest.Await(t, "records settle", func() string {
			mu.Lock()
			defer mu.Unlock()
			for route, n := range want {
				if handled[route] < n {
					return fmt.Sprintf("handled %v, want %v; failed %q", handled, want, failed)
				}
			}
			return ""
		})
	}
}
