//go:build integration

package poller

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/boltstate"
)

const endpointEnv = "SLUICE_TEST_DYNAMODB"

func localConfig() aws.Config {
	return aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		BaseEndpoint: aws.String(os.Getenv(endpointEnv)),
	}
}

// newTable makes a table with a stream, or without when view is empty.
func newTable(t *testing.T, view types.StreamViewType) (*dynamodb.Client, string) {
	t.Helper()
	if os.Getenv(endpointEnv) == "" {
		t.Fatalf("%s is not set: run make test", endpointEnv)
	}
	c := dynamodb.NewFromConfig(localConfig())
	name := localtest.Name("poller")
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	}
	if view != "" {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: view}
	}
	if _, err := c.CreateTable(t.Context(), in); err != nil {
		t.Fatalf("create table at %s: %v", os.Getenv(endpointEnv), err)
	}
	t.Cleanup(func() {
		if _, err := c.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Errorf("delete table: %v", err)
		}
	})
	return c, name
}

// change writes version n of an item; every version is another change.
func change(ctx context.Context, c *dynamodb.Client, table, id string, n int) error {
	_, err := c.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: id}, "n": &types.AttributeValueMemberN{Value: fmt.Sprint(n)},
	}})
	return err
}

func mustChange(t *testing.T, c *dynamodb.Client, table, id string, versions ...int) {
	t.Helper()
	for _, n := range versions {
		if err := change(t.Context(), c, table, id, n); err != nil {
			t.Fatal(err)
		}
	}
}

// version reads what change wrote.
func version(rec *sluice.Record) (id string, n int, err error) {
	k, ok := rec.Keys.Lookup("id")
	v, ok2 := rec.New.Lookup("n")
	i, ok3 := v.Int64()
	if !ok || !ok2 || !ok3 {
		return "", 0, sluice.Permanent(fmt.Errorf("record %s lacks id or n", rec.EventID))
	}
	return k.Str(), int(i), nil
}

// ledger notes versions by table and item, and lets a test wait for a number
// of them.
type ledger struct {
	mu    sync.Mutex
	seen  map[string][]int
	total int
}

func newLedger() *ledger { return &ledger{seen: map[string][]int{}} }

func (l *ledger) handle(_ context.Context, rec *sluice.Record) error {
	id, n, err := version(rec)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[rec.Table+"/"+id] = append(l.seen[rec.Table+"/"+id], n)
	l.total++
	return nil
}

func (l *ledger) wait(t *testing.T, total int) {
	t.Helper()
	localtest.Await(t, "changes are handled", func() string {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.total >= total {
			return ""
		}
		return fmt.Sprintf("%d of %d", l.total, total)
	})
}

// background runs a Poller until the returned function is called.
func background(t *testing.T, h sluice.Handler, o Options) (p *Poller, stop func()) {
	t.Helper()
	p, err := New(localConfig(), matcher(h), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	return p, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

func openState(t *testing.T, path string) *boltstate.Store {
	t.Helper()
	s, err := boltstate.Open(path, boltstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Several tables in one daemon; every item in order; a restart goes on.
func TestLocalTablesOrderAndRestart(t *testing.T) {
	const items, versions = 30, 20
	localtest.OwnDynamoDB(t)
	c, orders := newTable(t, types.StreamViewTypeNewAndOldImages)
	_, users := newTable(t, types.StreamViewTypeNewImage)
	file := t.TempDir() + "/state"
	write := func(from int) {
		var wg sync.WaitGroup
		for _, table := range []string{orders, users} {
			for i := range items {
				wg.Go(func() {
					for n := range versions {
						if err := change(t.Context(), c, table, fmt.Sprint(i), from+n); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
	}
	l := newLedger()
	run := func(total int) {
		store := openState(t, file)
		defer store.Close()
		o := testOptions(store, orders, users)
		_, stop := background(t, l.handle, o)
		defer stop()
		l.wait(t, total)
	}
	write(0)
	run(2 * items * versions)
	write(versions)
	run(4 * items * versions)
	run(4 * items * versions) // and nothing again
	if len(l.seen) != 2*items {
		t.Errorf("%d items were seen, want %d", len(l.seen), 2*items)
	}
	for item, got := range l.seen {
		if len(got) != 2*versions || !slices.IsSorted(got) {
			t.Errorf("%s: versions %v", item, got)
		}
	}
}

// LATEST handles nothing older than the start by more than the minute to which
// DynamoDB Local rounds, and everything later, also across a restart.
func TestLocalLatest(t *testing.T) {
	c, table := newTable(t, types.StreamViewTypeNewAndOldImages)
	mustChange(t, c, table, "a", 1, 2, 3)
	store := state.NewMemory()
	o := testOptions(store, table)
	o.Start = Latest
	l := newLedger()
	started := make(chan struct{}, 1)
	o.Hooks.Polled = func(Poll) {
		select {
		case started <- struct{}{}:
		default:
		}
	}
	_, stop := background(t, l.handle, o)
	<-started
	mustChange(t, c, table, "a", 4, 5)
	l.wait(t, 2)
	stop()
	mustChange(t, c, table, "a", 6)
	o.Hooks.Polled = nil
	_, stop = background(t, l.handle, o)
	l.wait(t, 3)
	stop()
	want(t, "versions", fmt.Sprint(l.seen[table+"/a"]), "[4 5 6]")
}

func TestLocalLatestRestartBeforeTheFirstRecord(t *testing.T) {
	c, table := newTable(t, types.StreamViewTypeNewAndOldImages)
	o := testOptions(state.NewMemory(), table)
	o.Start = Latest
	polled := make(chan struct{}, 1)
	o.Hooks.Polled = func(Poll) {
		select {
		case polled <- struct{}{}:
		default:
		}
	}
	l := newLedger()
	_, stop := background(t, l.handle, o)
	<-polled
	stop()
	mustChange(t, c, table, "a", 1, 2)
	_, stop = background(t, l.handle, o)
	l.wait(t, 2)
	stop()
	want(t, "versions", fmt.Sprint(l.seen[table+"/a"]), "[1 2]")
}

func TestLocalRefusesToStart(t *testing.T) {
	_, bare := newTable(t, "")
	_, keys := newTable(t, types.StreamViewTypeKeysOnly)
	_, good := newTable(t, types.StreamViewTypeNewAndOldImages)
	for _, c := range []struct {
		name   string
		change func(*aws.Config, *Options)
		says   []string
	}{
		{"wrong table", func(_ *aws.Config, o *Options) { o.Streams[0].Table = "no-such-table" }, []string{`"no-such-table"`, "there is no such table at http://"}},
		{"table without a stream", func(_ *aws.Config, o *Options) { o.Streams[0].Table = bare }, []string{bare, "has no stream", "update-table"}},
		{"view type", func(_ *aws.Config, o *Options) { o.Streams[0].Table = keys }, []string{keys, "KEYS_ONLY"}},
		{"no start", func(_ *aws.Config, o *Options) { o.Start = "" }, []string{good, "no start given"}},
		{"nobody there", func(cfg *aws.Config, o *Options) {
			cfg.BaseEndpoint, o.StartTimeout = aws.String("http://127.0.0.1:1"), time.Second
		}, []string{"127.0.0.1:1", "connection refused"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, o := localConfig(), testOptions(state.NewMemory(), good)
			c.change(&cfg, &o)
			m := matcher(func(context.Context, *sluice.Record) error { return nil })
			m.route.Needs = item.BothImages
			p, err := New(cfg, m, o)
			if err != nil {
				t.Fatal(err)
			}
			err = p.Run(t.Context())
			if err == nil {
				t.Fatal("it started")
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error lacks %q: %v", part, err)
				}
			}
		})
	}
}
