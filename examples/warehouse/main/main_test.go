//go:build integration

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/warehouse"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/runtimeapi"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/streamtest"
)

// runMain is the variable that makes the test binary the program: the function
// needs no build of its own.
const runMain = "WAREHOUSE_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// world is tables, indices and a queue of the test's own, the first two made by
// the program.
type world struct {
	t      *testing.T
	env    map[string]string
	store  *dynamodb.Store
	client *opensearch.Client
	queues *awssqs.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db, q := localtest.DynamoDB(t), localtest.SQS(t)
	name := localtest.Name("warehouse")
	w := &world{t: t, queues: awssqs.NewFromConfig(q)}
	made, err := w.queues.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	w.env = map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
		"WAREHOUSE_PREFIX": name + "_", "WAREHOUSE_INDEX_PREFIX": name + "-", "WAREHOUSE_REPLICAS": "0", "WAREHOUSE_QUEUE": *made.QueueUrl,
		"SLUICE_ENDPOINT_DYNAMODB": *db.BaseEndpoint, "SLUICE_ENDPOINT_SQS": *q.BaseEndpoint,
		"SLUICE_ENDPOINT_OPENSEARCH": localtest.OpenSearchURL(t),
	}
	for name, value := range w.env {
		t.Setenv(name, value) // the SDK reads it
	}
	for range 2 { // the second time they are there
		if got, err := w.command("create"); err != nil || got != "tables … and indices package and build are there\n" {
			t.Fatal(got, err)
		}
	}
	if w.client, err = kit.Cluster(w.getenv, "WAREHOUSE", db); err != nil {
		t.Fatal(err)
	}
	if w.store, err = dynamodb.New(db, dynamodb.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the test's own context has ended by now
		ctx := context.Background()
		for _, table := range warehouse.All(w.env["WAREHOUSE_PREFIX"]) {
			if _, err := awsdynamodb.NewFromConfig(db).DeleteTable(ctx, &awsdynamodb.DeleteTableInput{TableName: &table}); err != nil {
				t.Error(err)
			}
		}
		prefix := w.env["WAREHOUSE_INDEX_PREFIX"]
		if err := w.client.Call(ctx, http.MethodDelete, "/"+prefix+"package-000001,"+prefix+"build-000001", nil, nil); err != nil {
			t.Error(err)
		}
		if _, err := w.queues.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: made.QueueUrl}); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) getenv(name string) string { return w.env[name] }

// command runs one. What it prints is without the prefixes of names.
func (w *world) command(args ...string) (string, error) {
	w.t.Helper()
	var out strings.Builder
	err := program.Execute(w.t.Context(), args[0], kit.Call{Args: args[1:], Env: w.getenv, Out: &out})
	return strings.NewReplacer(w.env["WAREHOUSE_PREFIX"], "", w.env["WAREHOUSE_INDEX_PREFIX"], "").Replace(out.String()), err
}

// answers waits until a command prints want.
func (w *world) answers(command, want string) {
	w.t.Helper()
	localtest.Await(w.t, command, func() string {
		got, err := w.command(strings.Fields(command)...)
		if got == want {
			return ""
		}
		return fmt.Sprintf("%s%v", got, err)
	})
}

// document waits until a document has the text that is wanted.
func (w *world) document(index, id, want string) {
	w.t.Helper()
	localtest.Await(w.t, id, func() string {
		var body []byte
		err := w.client.Call(w.t.Context(), http.MethodGet, "/"+w.env["WAREHOUSE_INDEX_PREFIX"]+index+"/_doc/"+url.PathEscape(id), nil, &body)
		if refused, ok := errors.AsType[*opensearch.StatusError](err); ok && refused.Status == http.StatusNotFound {
			return "none"
		}
		if err != nil || !strings.Contains(string(body), want) {
			return fmt.Sprintf("%s, %v", body, err)
		}
		return ""
	})
}

// wantMessages waits for the messages of a build.
func (w *world) wantMessages() {
	w.t.Helper()
	var bodies []string
	localtest.Await(w.t, "messages", func() string {
		out, err := w.queues.ReceiveMessage(w.t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: aws.String(w.env["WAREHOUSE_QUEUE"]), MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil {
			return err.Error()
		}
		for _, m := range out.Messages {
			bodies = append(bodies, *m.Body)
		}
		slices.Sort(bodies)
		if bodies = slices.Compact(bodies); len(bodies) < 2 {
			return fmt.Sprint(bodies)
		}
		return ""
	})
	want := []string{
		`{"event":"build_completed","pkg":"whatever","version":"1.0.0","env":"dev","repository":{}}`,
		`{"event":"build_started","pkg":"whatever","version":"1.0.0","env":"dev","total":2}`,
	}
	if !slices.Equal(bodies, want) {
		w.t.Errorf("told %q", bodies)
	}
}

// The answers of the commands for the fixtures.
var answers = map[string]string{
	"status whatever dev 1.0.0": `{"key":"whatever!dev!1.0.0","pkg":"whatever","env":"dev","version":"1.0.0","previous_version":"0.9.0","total":2,"error":false,"complete":true,"create_date":"2026-01-31T10:02:00.000Z","update_date":"2026-01-31T10:12:00.000Z"}` + "\n",
	"head whatever dev":         `{"key":"whatever!dev","pkg":"whatever","env":"dev","version":"1.0.0","previous_version":"0.9.0","total":2,"create_date":"2026-01-31T10:06:00.000Z","update_date":"2026-01-31T10:06:00.000Z"}` + "\n",
	"package email":             `{"name":"email","version":"2.1.0","description":"Mail","dependencies":{"button":"^1.0.0","layout":"^3.0.0"}}` + "\n",
	"dependents button":         `"email"` + "\n",
	"dependent-of email":        `"button"` + "\n",
	"line-head email":           `{"pkg":"email","version":"2.1.0","previous_version":"2.0.0"}` + "\n",
	"heads email prod":          strings.Replace(build, `"key":"email!prod!2.1"`, `"key":"email!prod"`, 1),
}

const build = `{"key":"email!prod!2.1","locale":"en-US","build_id":"email!prod!2.1!en-US","previous_build_id":"email!prod!2.0!en-US","name":"email","env":"prod","version":"2.1","fingerprints":["a","a.gz"],"artifacts":["a/email.js"]}` + "\n"

// The program as a daemon, and its commands beside it.
func TestDaemon(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	exit := make(chan int, 1)
	var log bytes.Buffer
	args := []string{"--start", "TRIM_HORIZON", "--listen", "off", "--state", filepath.Join(t.TempDir(), "state.db")}
	go func() { exit <- run.Run(ctx, app(w.getenv), args, w.getenv, &log, &log) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if code := <-exit; code != 0 || t.Failed() {
			t.Errorf("exit %d, log:\n%s", code, log.String())
		}
	})
	t.Cleanup(stop)

	if got, err := w.command("seed"); err != nil || strings.Count(got, "\n") != 12 || strings.Contains(got, "is there") {
		t.Fatal(got, err)
	}
	for command, want := range answers {
		w.answers(command, want)
	}
	w.wantMessages()
	w.document("package", "email", `"dependencies":{"`)
	w.document("build", "email!prod!2.1!en-US", `"fingerprints":["a","a.gz"]`)
	if got, err := w.command("seed"); err != nil || strings.Count(got, " is there\n") != 12 {
		t.Error(got, err)
	}
	w.answers("head whatever dev", answers["head whatever dev"]) // it is not set back

	for _, command := range []string{"events nobody dev 1.0.0", "status nobody dev 1.0.0"} {
		if got, err := w.command(strings.Fields(command)...); got != "" || err == nil || !strings.HasPrefix(err.Error(), "nothing found for "+command) {
			t.Errorf("%s: %s%v", command, got, err)
		}
	}
	w.pages()
	for command, want := range map[string]string{
		"builds email prod 2.1": build,
		"line email 2.1.0":      `{"key":"email!2.1.0","pkg":"email","version":"2.1.0","previous_version":"2.0.0"}` + "\n",
		"versions email 2.0.0":  `{"name":"email","version":"2.1.0","value":"{\"name\":\"email\",\"version\":\"2.1.0\",\"description\":\"Mail\",\"dependencies\":{\"layout\":\"^3.0.0\",\"button\":\"^1.0.0\"}}"}` + "\n",
	} {
		w.answers(command, want)
	}

	b := warehouse.Fixtures()[8].Item
	if err := w.store.Delete(t.Context(), w.env["WAREHOUSE_PREFIX"]+"build", b.Only("key", "locale")); err != nil {
		t.Fatal(err)
	}
	w.answers("heads email prod", "")
	w.document("build", "email!prod!2.1!en-US", `"deleted":`) // its tombstone, which no search through the alias finds
	stop()
}

// pages reads events, and packages, one by one.
func (w *world) pages() {
	w.t.Helper()
	if err := w.store.Put(w.t.Context(), w.env["WAREHOUSE_PREFIX"]+"package", item.Of(item.String("name", "web"), item.String("version", "1.0.0"))); err != nil {
		w.t.Fatal(err)
	}
	for command, want := range map[string]string{
		"events whatever dev 1.0.0": "event complete queued error complete complete ",
		"packages":                  "email web ",
	} {
		var got []string
		var next string
		for {
			args := append(strings.Fields(command), "--limit", "1")
			if next != "" {
				args = append(args, "--after", next)
			}
			out, err := w.command(args...)
			if err != nil {
				w.t.Fatal(err)
			}
			next = ""
			for line := range strings.Lines(out) {
				it, err := item.FromJSON([]byte(line))
				if err != nil {
					w.t.Fatal(err)
				}
				for _, name := range []string{"event_type", "name"} {
					if v, ok := it.Lookup(name); ok {
						got = append(got, v.Str()+" ")
					}
				}
				if v, ok := it.Lookup("next"); ok {
					next = v.Str()
				}
			}
			if next == "" {
				break
			}
		}
		if command == "packages" {
			slices.Sort(got) // they have no order
		}
		if strings.Join(got, "") != want {
			w.t.Errorf("%s: %q, want %s", command, got, want)
		}
	}
}

// The same program is the function. Its own writes come to it as the records
// that their streams have.
func TestFunction(t *testing.T) {
	w := newWorld(t)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	env := []string{runMain + "=1"}
	for name, value := range w.env {
		env = append(env, name+"="+value)
	}
	fn, err := runtimeapi.Start(t.Context(), runtimeapi.Command{Path: binary, Stdout: &log, Stderr: &log, Env: env})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	invoke := func(want string, recs ...sluice.Record) {
		t.Helper()
		answer, err := fn.Invoke(t.Context(), streamtest.Event(recs...), localtest.Patience)
		if err != nil || string(answer.Payload) != want {
			t.Fatalf("answer %s %s, %v; want %s\n%s", answer.Payload, answer.Message, err, want, log.String())
		}
	}
	const done = `{"batchItemFailures":[]}`
	prefix := w.env["WAREHOUSE_PREFIX"]
	fx := warehouse.Fixtures()
	record := func(f warehouse.Fixture) sluice.Record {
		keys, err := warehouse.Keys(f.Table)
		if err != nil {
			t.Fatal(err)
		}
		return streamtest.Insert(prefix+f.Table, f.Item, streamtest.WithKeys(keys[0], keys[1:]...))
	}
	if _, err := w.command("seed"); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"status_event", "version", "release_line", "build"} {
		var recs []sluice.Record
		for _, f := range fx {
			if f.Table == table {
				recs = append(recs, record(f))
			}
		}
		slices.Reverse(recs)
		invoke(done, recs...)
		invoke(done, recs...)
	}
	item := func(table, key, value string) sluice.Item {
		t.Helper()
		it, err := w.store.Get(t.Context(), prefix+table, item.Of(item.String(key, value)))
		if err != nil || !it.Exists() {
			t.Fatalf("%s %s: %v", table, value, err)
		}
		return it
	}
	invoke(done, record(warehouse.Fixture{Table: "status_counter", Item: item("status_counter", "key", "whatever!dev!1.0.0")}))
	invoke(done, record(warehouse.Fixture{Table: "status", Item: item("status", "key", "whatever!dev!1.0.0")}))
	invoke(done, record(warehouse.Fixture{Table: "package", Item: item("package", "name", "email")}))
	for command, want := range answers {
		if got, err := w.command(strings.Fields(command)...); err != nil || got != want {
			t.Errorf("%s: %s%v, want %s", command, got, err, want)
		}
	}
	w.wantMessages()
	w.document("package", "email", `"dependencies":{"`)
	w.document("build", "email!prod!2.1!en-US", `"fingerprints":["a","a.gz"]`)

	b := fx[8]
	if err := w.store.Delete(t.Context(), prefix+"build", b.Item.Only("key", "locale")); err != nil {
		t.Fatal(err)
	}
	invoke(done, streamtest.Remove(prefix+"build", b.Item, streamtest.WithKeys("key", "locale")))
	if got, err := w.command("heads", "email", "prod"); got != "" || err == nil {
		t.Error(got, err)
	}
	if _, err := fn.Stop(); err != nil {
		t.Error(err)
	}
}
