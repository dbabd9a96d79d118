//go:build integration

package cascade

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/tally"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

func init() { workerProcess = workUntilKilled }

const (
	mapsEnv   = "SLUICE_CASCADE_TEST_MAPS"
	pointsEnv = "SLUICE_CASCADE_TEST_POINTS"
)

// realConfig is maps and points in tables of a server.
func realConfig(store *dynamodb.Store, maps, points string, send func(sluice.Message) error) Config {
	return Config{
		Table: maps, Key: []string{"user_id", "map_id"},
		Children: []Child{{
			Table: points, Key: []string{"map_id", "point_id"},
			Partition: Attr{Name: "map_id", From: "map_id"},
		}},
		Get: store.Get, Query: store.Query, Delete: store.DeleteGuarded,
		Send: func(_ context.Context, m sluice.Message) error { return send(m) },
	}
}

func realBody(maps, points string) string {
	return fmt.Sprintf(`{"kind":"cascade.delete","table":%q,"key":{"map_id":"m-1"},"parent":{"table":%q,"key":{"user_id":"u-1","map_id":"m-1"}},"dedupeKey":"%s/u-1/m-1"}`, points, maps, maps)
}

// workUntilKilled handles one message. It prints each durable write.
func workUntilKilled() {
	endpoint := os.Getenv(localstack.EnvDynamoDB)
	store, err := dynamodb.New(aws.Config{
		Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient: &http.Client{},
	}, dynamodb.Options{InFlight: 1})
	exitOn(err)
	maps, points := os.Getenv(mapsEnv), os.Getenv(pointsEnv)
	c := realConfig(store, maps, points, func(m sluice.Message) error {
		_, err := fmt.Println("sent", m.Body)
		return err
	})
	c.Metrics = tally.Func(func(name, _ string, v float64) {
		if name == "sluice_cascade_deleted_rows_total" {
			fmt.Println("deleted", int(v))
		}
	})
	c.PageSize = 100
	x, err := New(c)
	exitOn(err)
	exitOn(x.Work(context.Background(), record(sluice.Message{Body: realBody(maps, points)})))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// newTable makes a table with a string key of two attributes.
func newTable(t *testing.T, client *sdk.Client, partition, sort string) string {
	t.Helper()
	name := localtest.Name("cascade")
	_, err := client.CreateTable(t.Context(), &sdk.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: &partition, AttributeType: types.ScalarAttributeTypeS}, {AttributeName: &sort, AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: &partition, KeyType: types.KeyTypeHash}, {AttributeName: &sort, KeyType: types.KeyTypeRange},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.DeleteTable(context.Background(), &sdk.DeleteTableInput{TableName: &name})
	})
	return name
}

func count(t *testing.T, store *dynamodb.Store, table, m string) (n int) {
	t.Helper()
	for _, err := range dynamo.All(t.Context(), store.Query, dynamo.Query{Table: table, Partition: item.String("map_id", m), Attributes: []string{"map_id"}}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// A worker that is killed in the middle of 10,000 children leaves the rest to
// the next delivery of its message.
func TestLocalKilledWorker(t *testing.T) {
	const rows = 10_000
	cfg := localtest.DynamoDB(t)
	client := sdk.NewFromConfig(cfg)
	maps, points := newTable(t, client, "user_id", "map_id"), newTable(t, client, "map_id", "point_id")
	store, err := dynamodb.New(cfg, dynamodb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var items []sluice.Item
	for i := range rows {
		items = append(items, parse(point("m-1", i)))
	}
	items = append(items, parse(point("m-2", 1)), parse(point("m-10", 1)))
	for _, err := range store.PutAll(t.Context(), points, items) {
		if err != nil {
			t.Fatal(err)
		}
	}

	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"=1", mapsEnv+"="+maps, pointsEnv+"="+points)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var n int
		if _, err := fmt.Sscanf(lines.Text(), "deleted %d", &n); err != nil {
			t.Errorf("%q: it was over before it was killed", lines.Text())
		}
		if told += n; told >= 1000 {
			break
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
		t.Fatalf("the worker ended before it was killed: %v", cmd.ProcessState)
	}
	left := count(t, store, points, "m-1")
	if left == 0 || left > rows-told {
		t.Errorf("%d of %d rows are left; the worker told of %d", left, rows, told)
	}

	var mu sync.Mutex
	var sent []sluice.Message
	c := realConfig(store, maps, points, func(m sluice.Message) error {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, m)
		return nil
	})
	x := must(t, c)
	begun := time.Now()
	if err := x.Work(t.Context(), record(sluice.Message{Body: realBody(maps, points)})); err != nil {
		t.Fatal(err)
	}
	t.Logf("killed with %d rows left, which took %v", left, time.Since(begun))
	if len(sent) != 1 || sent[0].Delay != time.Minute {
		t.Errorf("sent %+v, want a sweep", sent)
	}
	if a, b, c := count(t, store, points, "m-1"), count(t, store, points, "m-2"), count(t, store, points, "m-10"); a != 0 || b != 1 || c != 1 {
		t.Errorf("%d children are left, and %d and %d of two others; want 0, 1, 1", a, b, c)
	}

	// The parent is back: the sweep deletes nothing.
	for table, it := range map[string]sluice.Item{maps: parse(mapKey), points: parse(point("m-1", 5))} {
		if err := store.Put(t.Context(), table, it); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Work(t.Context(), record(sent[0])); !sluice.IsSkip(err) || count(t, store, points, "m-1") != 1 {
		t.Errorf("%v, %d rows", err, count(t, store, points, "m-1"))
	}
}

// A real index, numbers and binary as keys, a prefix, and a limit.
func TestLocalKeysAndIndexes(t *testing.T) {
	cfg := localtest.DynamoDB(t)
	client := sdk.NewFromConfig(cfg)
	name := localtest.Name("cascade")
	attr := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kind}
	}
	keys := func(partition, sort string) []types.KeySchemaElement {
		return []types.KeySchemaElement{
			{AttributeName: &partition, KeyType: types.KeyTypeHash}, {AttributeName: &sort, KeyType: types.KeyTypeRange},
		}
	}
	if _, err := client.CreateTable(t.Context(), &sdk.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions:   []types.AttributeDefinition{attr("id", types.ScalarAttributeTypeN), attr("part", types.ScalarAttributeTypeB), attr("owner", types.ScalarAttributeTypeN), attr("rank", types.ScalarAttributeTypeS)},
		KeySchema:              keys("id", "part"),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{IndexName: aws.String("byOwner"), KeySchema: keys("owner", "rank"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}}},
	}); err != nil {
		t.Fatal(err)
	}
	defer client.DeleteTable(context.Background(), &sdk.DeleteTableInput{TableName: &name})
	store, err := dynamodb.New(cfg, dynamodb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	key := func(id, part int) sluice.Item {
		return item.Of(item.Number("id", strconv.Itoa(id)), item.Binary("part", []byte{byte(part), 255}))
	}
	for i := range 60 {
		it := key(i, i).With(item.Number("owner", strconv.Itoa(i%2)), item.String("rank", []string{"a#", "b#"}[i/30]+strconv.Itoa(i)), item.Number("v", strconv.Itoa(i)))
		if err := store.Put(t.Context(), name, it); err != nil {
			t.Fatal(err)
		}
	}
	var sent []string
	x := must(t, Config{
		Table: name, Key: []string{"id", "part"},
		Children: []Child{{
			Table: name, Key: []string{"id", "part"}, Index: "byOwner",
			Partition: Attr{Name: "owner", From: "id"}, Sort: Attr{Name: "rank", Before: "b#"},
			NotNewer: Limit{Name: "v", From: "version"},
		}},
		Get: store.Get, Query: store.Query, Delete: store.DeleteGuarded,
		Send: func(_ context.Context, m sluice.Message) error { sent = append(sent, m.Body); return nil },
	})
	parent := key(1, 1)
	if err := store.Delete(t.Context(), name, parent); err != nil {
		t.Fatal(err)
	}
	if err := x.Remove(t.Context(), removed(name, string(parent.Raw()), string(parent.With(item.Number("version", "50")).Raw()))); err != nil {
		t.Fatal(err)
	}
	if err := x.Work(t.Context(), record(sluice.Message{Body: sent[0]})); err != nil {
		t.Fatal(err)
	}
	var gone []string
	for i := range 60 {
		it, err := store.Get(t.Context(), name, key(i, i))
		if err != nil {
			t.Fatal(err)
		}
		if !it.Exists() {
			gone = append(gone, strconv.Itoa(i))
		}
	}
	want := []string{"1"} // the parent itself
	for i := 31; i < 50; i += 2 {
		want = append(want, strconv.Itoa(i))
	}
	if !slices.Equal(gone, want) {
		t.Errorf("gone are %v, want %v", gone, want)
	}
}
