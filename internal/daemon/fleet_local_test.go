//go:build integration

package daemon

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/state/dynamostate"
)

// stateTable makes a state table and returns its place.
func stateTable(t *testing.T) string {
	t.Helper()
	cfg, name := localtest.DynamoDB(t), localtest.Name("state")
	if err := dynamostate.Create(t.Context(), cfg, name, dynamostate.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := dynamodb.NewFromConfig(cfg).DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Error(err)
		}
	})
	return "dynamodb:" + name
}

// awaitPosition waits until a position of the application's only shard is stored.
func awaitPosition(t *testing.T, place, app string) {
	t.Helper()
	store, err := statestore.Open(t.Context(), place, statestore.Options{AWS: func() (aws.Config, error) { return localtest.DynamoDB(t), nil }})
	if err != nil {
		t.Fatal(err)
	}
	localtest.Await(t, "a stored position", func() string {
		streams, err := store.Streams(t.Context(), app)
		for _, st := range streams {
			shards, err := store.Shards(t.Context(), st)
			if err == nil && len(shards) == 1 && shards[0].Position.Sequence != "" {
				return ""
			}
		}
		return fmt.Sprint("none in ", streams, err)
	})
}

// Two daemons share a state table. One reads, and the other takes over: after a kill
// when the first was silent for long enough, after an orderly stop at once.
func TestTwoDaemons(t *testing.T) {
	tb, place := newTable(t, images), stateTable(t)
	tb.put("one")
	first := startChild(t, "echo", nil, tb.args(place, "--start", "TRIM_HORIZON")...)
	first.until("handled one", 1)
	awaitPosition(t, place, "echo")
	second := startChild(t, "echo", nil, tb.args(place)...)
	second.until("msg=starting", 1)
	tb.put("two")
	localtest.Await(t, "record two", func() string { // the first was perhaps too slow for the second
		if strings.Contains(first.output()+second.output(), "handled two") {
			return ""
		}
		return first.output() + second.output()
	})
	first.signal(syscall.SIGKILL)
	first.exit()
	tb.put("three")
	second.until("handled three", 1)

	third := startChild(t, "echo", nil, tb.args(place)...)
	third.until("msg=starting", 1)
	localtest.Await(t, "the second worker's shard in the status of the third", func() string {
		_, body := third.ask("GET", "/")
		if strings.Contains(body, "\nworker ") && strings.Contains(body, ": 0 of 1 open shard, ") {
			return ""
		}
		return body
	})
	second.signal(syscall.SIGTERM)
	if code := second.exit(); code != 0 {
		t.Fatalf("exit code %d after SIGTERM:\n%s", code, second.output())
	}
	tb.put("four")
	third.until("handled four", 1)
	if all := second.output() + third.output(); strings.Contains(all, "handled one") {
		t.Errorf("a worker begins anew:\n%s", all)
	}
}

// Without a token nobody can ask a daemon whose state is in a table, and it writes
// no file.
func TestTableWithoutAToken(t *testing.T) {
	tb, place := newTable(t, images), stateTable(t)
	t.Chdir(t.TempDir())
	c := startChild(t, "echo", []string{access.TokenEnv + "="}, tb.args(place, "--start", "LATEST")...)
	c.until("has no token: set SLUICE_TOKEN", 1)
	c.until("msg=listening", 1)
	for _, token := range []string{"", testToken} {
		if code, body := c.askWith(token, "GET", "/deadletters"); code != 401 {
			t.Errorf("token %q: %d %s", token, code, body)
		}
	}
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("it has written %v, %v", files, err)
	}
}

func TestStateTableIsMissing(t *testing.T) {
	tb := newTable(t, images)
	expectExit(t, App{Name: "shop", Routes: anyRoutes}, tb.args("dynamodb:no-such-table", "--start", "LATEST"), nil, 1,
		"--state (SLUICE_STATE", "state table no-such-table", "sluice state create --state dynamodb:no-such-table")
}

// A daemon that joins another program's under its application name says so.
func TestADaemonWithOtherRoutes(t *testing.T) {
	tb, place := newTable(t, images), stateTable(t)
	first := startChild(t, "echo", nil, tb.args(place, "--start", "LATEST")...)
	first.until("shard started", 1)
	second := startChild(t, "holding", nil, tb.args(place, "--application", "echo")...)
	second.until("run another configuration", 1)
}

// Any worker shows what the others hold, and how their routes are.
func TestHeldByAnotherWorker(t *testing.T) {
	tb, place := newTable(t, images), stateTable(t)
	first := startChild(t, "holding", nil, tb.args(place, "--start", "TRIM_HORIZON")...)
	first.until("shard started", 1)
	tb.put("held")
	first.until("will be tried again", 1)
	second := startChild(t, "holding", nil, tb.args(place)...)
	second.until("msg=starting", 1)
	shows := func(path string, wants ...string) {
		t.Helper()
		localtest.Await(t, fmt.Sprint(path, " with ", wants), func() string {
			_, body := second.ask("GET", path)
			for _, want := range wants {
				if !strings.Contains(body, want) {
					return body
				}
			}
			return ""
		})
	}
	shows("/api/status", `"held": 1`, `"otherWorkers": [`, `"waitingRecords": 1`)
	shows("/api/held", `"worker": "`, `"attempts": 1`)
	shows("/api/workers", `"report": {`, `"held": 1`)
	first.signal(syscall.SIGTERM)
	first.exit()
	store, err := statestore.Open(t.Context(), place, statestore.Options{AWS: func() (aws.Config, error) { return localtest.DynamoDB(t), nil }})
	if err != nil {
		t.Fatal(err)
	}
	localtest.Await(t, "the report of the second worker alone", func() string {
		values, err := store.ListValues(t.Context(), "holding", "workers/")
		if err == nil && len(values) == 1 && strings.Contains(string(values[0].Data), `"held":1`) {
			return ""
		}
		return fmt.Sprintf("%s, %v", values, err)
	})
}
