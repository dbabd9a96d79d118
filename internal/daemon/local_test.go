//go:build integration

package daemon

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state/boltstate"
)

const endpointEnv = "SLUICE_TEST_DYNAMODB"

// table is a table of a test's own.
type table struct {
	t    *testing.T
	db   *dynamodb.Client
	name string
}

func newTable(t *testing.T, view types.StreamViewType) table {
	t.Helper()
	endpoint := os.Getenv(endpointEnv)
	if endpoint == "" {
		t.Fatalf("%s is not set: run make test", endpointEnv)
	}
	noAWS(t)
	tb := table{t: t, name: localtest.Name("run"), db: dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})}
	in := &dynamodb.CreateTableInput{
		TableName: &tb.name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	}
	if view != "" {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: view}
	}
	if _, err := tb.db.CreateTable(t.Context(), in); err != nil {
		t.Fatalf("create table at %s: %v", endpoint, err)
	}
	t.Cleanup(func() {
		if _, err := tb.db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &tb.name}); err != nil {
			t.Errorf("delete table: %v", err)
		}
	})
	return tb
}

func (tb table) put(ids ...string) {
	tb.t.Helper()
	for _, id := range ids {
		_, err := tb.db.PutItem(tb.t.Context(), &dynamodb.PutItemInput{
			TableName: &tb.name, Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
		})
		if err != nil {
			tb.t.Fatal(err)
		}
	}
}

func (tb table) args(state string, more ...string) []string {
	return append([]string{"--table", tb.name, "--state", state, "--endpoint-dynamodb", os.Getenv(endpointEnv), "--listen", "127.0.0.1:0"}, more...)
}

var images = types.StreamViewTypeNewAndOldImages

// The error of every wrong input at the start says what to do.
func TestBadInput(t *testing.T) {
	tb := newTable(t, images)
	keysOnly := newTable(t, types.StreamViewTypeKeysOnly)
	noStream := newTable(t, "")
	app := App{Name: "shop", Routes: anyRoutes}
	needsOld := App{Name: "shop", Routes: func(context.Context, Setup) (sluice.Matcher, error) {
		r := router.New()
		r.Handle("*#MODIFY", func(context.Context, *sluice.Record) error { return nil }, router.Name("status changed"), router.Changed("status"))
		return r, nil
	}}
	ofType := App{Name: "shop", Routes: func(context.Context, Setup) (sluice.Matcher, error) {
		r := router.New()
		r.Handle("search#REMOVE", func(context.Context, *sluice.Record) error { return nil })
		return r, nil
	}}
	state := func() string { return filepath.Join(t.TempDir(), "state.db") }
	horizon := []string{"--start", "TRIM_HORIZON"}
	missing := tb
	missing.name = "no-such-table"
	for _, tt := range []struct {
		name string
		app  App
		args []string
		want []string
	}{
		{"no such table", app, missing.args(state(), horizon...), []string{`table "no-such-table"`, "there is no such table at ", "Region us-east-1 (set by "}},
		{"no stream", app, noStream.args(state(), horizon...), []string{noStream.name, "the table has no stream", "aws dynamodb update-table"}},
		{"view type too poor", needsOld, keysOnly.args(state(), horizon...), []string{keysOnly.name, "KEYS_ONLY", `route "status changed"`, "NEW_AND_OLD_IMAGES"}},
		{"no image that tells the type", ofType, keysOnly.args(state(), horizon...), []string{keysOnly.name, "KEYS_ONLY", `route "search#REMOVE" needs OLD_IMAGE`}},
		{"no position and no start", app, tb.args(state()), []string{tb.name, "no stored position and no start given", "--start TRIM_HORIZON", "--start LATEST"}},
		{"one of two tables", app, tb.args(state(), "--table", "no-such-table", "--start", "LATEST"), []string{`table "no-such-table"`}},
		{"missing queue", App{Routes: children["echo"].Routes}, tb.args(state(), horizon...), []string{"the queue is missing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expectExit(t, tt.app, tt.args, map[string]string{"ECHO_FAIL": "yes"}, 1, tt.want...)
		})
	}
}

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

var listening = regexp.MustCompile(`msg=listening address=(\S+)`)

// A daemon handles changes, drains at SIGTERM, and continues there after a restart.
func TestDaemon(t *testing.T) {
	tb := newTable(t, images)
	state := filepath.Join(t.TempDir(), "state.db")
	tb.put("one", "two")
	c := startChild(t, "echo", nil, tb.args(state, "--start", "TRIM_HORIZON", "--log-level", "debug")...)
	c.until("handled one", 1)
	c.until("handled two", 1)
	tb.put("three")
	c.until("handled three "+tb.name+" false ["+tb.name+"]", 1)
	c.until("msg=handled", 3)

	m := listening.FindStringSubmatch(c.output())
	if m == nil {
		t.Fatalf("no address:\n%s", c.output())
	}
	address := "http://" + m[1]
	if !strings.HasPrefix(m[1], "127.0.0.1:") {
		t.Errorf("it listens on %s", m[1])
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if code, body := get(t, address+path); code != 200 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	_, metrics := get(t, address+"/metrics")
	for _, want := range []string{
		`sluice_records_total{outcome="done",route="*#*"} 3`,
		`sluice_handler_seconds_count{route="*#*"} 3`,
		`sluice_lag_seconds_count{route="*#*"} 3`,
		fmt.Sprintf(`sluice_polled_records_total{table="%s"} 3`, tb.name),
		fmt.Sprintf(`sluice_shards{table="%s"} 1`, tb.name),
		fmt.Sprintf(`sluice_watermark_age_seconds{table="%s"}`, tb.name),
		fmt.Sprintf(`sluice_polls_total{outcome="records",table="%s"}`, tb.name),
		"go_goroutines", "process_cpu_seconds_total",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	http.DefaultClient.CloseIdleConnections()

	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Fatalf("exit code %d after SIGTERM:\n%s", code, c.output())
	}

	// It needs no start now, and repeats nothing.
	tb.put("four")
	c = startChild(t, "echo", nil, tb.args(state)...)
	c.until("handled four", 1)
	c.signal(syscall.SIGINT)
	if code := c.exit(); code != 0 {
		t.Fatalf("exit code %d after SIGINT:\n%s", code, c.output())
	}
	for _, id := range []string{"one", "two", "three"} {
		if strings.Contains(c.output(), "handled "+id) {
			t.Errorf("%s was handled again after an orderly stop:\n%s", id, c.output())
		}
	}
}

// A handler that never returns does not delay the exit or change its code.
func TestStuckHandler(t *testing.T) {
	tb := newTable(t, images)
	state := filepath.Join(t.TempDir(), "state.db")
	tb.put("one")
	c := startChild(t, "stuck", nil, tb.args(state, "--start", "TRIM_HORIZON", "--grace", "10s")...)
	c.until("handling", 1)
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Fatalf("exit code %d after SIGTERM:\n%s", code, c.output())
	}
	// The record is not lost.
	c = startChild(t, "echo", nil, tb.args(state, "--application", "stuck")...)
	c.until("handled one", 1)
	c.signal(syscall.SIGTERM)
	c.exit()
}

// The second signal does not wait for the grace period.
func TestSecondSignalDuringGrace(t *testing.T) {
	tb := newTable(t, images)
	tb.put("one")
	c := startChild(t, "stuck", nil, tb.args(filepath.Join(t.TempDir(), "state.db"), "--start", "TRIM_HORIZON", "--grace", "1h")...)
	c.until("handling", 1)
	c.signal(syscall.SIGTERM)
	c.until("a second signal ends at once", 1)
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 143 {
		t.Fatalf("exit code %d after two signals:\n%s", code, c.output())
	}
}

// A route that fails for every record makes the daemon unready, and says why.
func TestOutageIsUnready(t *testing.T) {
	tb := newTable(t, images)
	for i := range 40 {
		tb.put(fmt.Sprint("item ", i))
	}
	c := startChild(t, "broken", nil, tb.args(filepath.Join(t.TempDir(), "state.db"), "--start", "TRIM_HORIZON", "--grace", "1s")...)
	c.until("msg=listening", 1)
	address := "http://" + listening.FindStringSubmatch(c.output())[1]
	c.until("route fails for every record", 1)
	code, body := get(t, address+"/readyz")
	if code != 503 || !strings.Contains(body, `route "*#*" fails for every record`) || !strings.Contains(body, "the sink is down") {
		t.Errorf("/readyz: %d %s\n%s", code, body, c.output())
	}
	if code, _ := get(t, address+"/livez"); code != 200 {
		t.Errorf("/livez: %d", code)
	}
	if _, metrics := get(t, address+"/metrics"); !strings.Contains(metrics, `sluice_route_state{route="*#*",state="outage"} 1`) {
		t.Error("/metrics has no outage")
	}
	http.DefaultClient.CloseIdleConnections()
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, c.output())
	}
}

// Poison is parked in the state file, whole.
func TestPoisonIsParked(t *testing.T) {
	tb := newTable(t, images)
	state := filepath.Join(t.TempDir(), "state.db")
	tb.put("poison", "good")
	c := startChild(t, "poisoned", nil, tb.args(state, "--start", "TRIM_HORIZON", "--log-level", "debug")...)
	c.until("result=parked", 1)
	c.until("result=done", 1)
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, c.output())
	}
	store, err := boltstate.Open(state, boltstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	entries, _, err := deadletter.NewBox(store, "poisoned").List(t.Context(), "", 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Fatalf("%d dead letters, want 1", len(entries))
	}
	rec := entries[0].Record()
	if id, _ := rec.Keys.Lookup("id"); rec.Err() != nil || id.Str() != "poison" || rec.Table != tb.name || !strings.Contains(entries[0].Last.Error, "never") {
		t.Errorf("the dead letter: %+v, %v", entries[0], rec.Err())
	}
}
