//go:build integration

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/streamtest"
)

// world is tables and queues of the test's own, made by the program, and a contact's
// webhook.
type world struct {
	t       *testing.T
	env     map[string]string
	name    string
	store   *dynamodb.Store
	people  *manhunt.Table
	queues  *awssqs.Client
	outbox  string
	hookURL string

	mu    sync.Mutex
	posts []string // key and body
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	db, q := localtest.DynamoDB(t), localtest.SQS(t)
	dir := t.TempDir()
	w := &world{t: t, name: localtest.Name("manhunt"), queues: awssqs.NewFromConfig(q), outbox: filepath.Join(dir, "outbox.ndjson")}
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is missing is seen below
		w.mu.Lock()
		defer w.mu.Unlock()
		w.posts = append(w.posts, r.Header.Get("Idempotency-Key")+" "+string(body))
	}))
	t.Cleanup(hook.Close)
	w.hookURL = hook.URL

	templates := filepath.Join(dir, "templates.json")
	if err := os.WriteFile(templates, []byte(`{
		"call": {"text": "{contact.name}: {metadata.incident}"},
		"webhook": {"body": {"to": "{contact.name}", "text": "{metadata.incident}: {metadata.why}", "stage": "{metadata.stage}"}}
	}`), 0o600); err != nil {
		t.Fatal(err)
	}
	attempts, watch := w.queue("attempts"), w.queue("watch")
	w.env = map[string]string{
		"SLUICE_ENDPOINT_DYNAMODB": *db.BaseEndpoint, "SLUICE_ENDPOINT_SQS": *q.BaseEndpoint,
		"SLUICE_TABLES": w.name + "," + w.name + "-reflex", "MANHUNT_QUEUE": attempts, "MANHUNT_WATCH_QUEUE": watch,
		"MANHUNT_TEMPLATES": templates, "MANHUNT_OUTBOX": w.outbox, "MANHUNT_WEBHOOKS": "any",
	}
	for range 2 { // what is there stays
		if out := w.command("create"); out != fmt.Sprintf("table %s is there\ntable %[1]s-reflex is there\n", w.name) {
			t.Fatal(out)
		}
	}
	t.Cleanup(func() { // the test's own context has ended by now
		for _, table := range []string{w.name, w.name + "-reflex"} {
			if _, err := awsdynamodb.NewFromConfig(db).DeleteTable(context.Background(), &awsdynamodb.DeleteTableInput{TableName: &table}); err != nil {
				t.Error(err)
			}
		}
	})
	var err error
	if w.store, err = dynamodb.New(db, dynamodb.Options{}); err != nil {
		t.Fatal(err)
	}
	w.people = manhunt.NewTable(w.store, w.name)
	return w
}

func (w *world) queue(name string) string {
	w.t.Helper()
	made, err := w.queues.CreateQueue(w.t.Context(), &awssqs.CreateQueueInput{QueueName: aws.String(localtest.Name(name))})
	if err != nil {
		w.t.Fatal(err)
	}
	return *made.QueueUrl
}

func (w *world) getenv(name string) string { return w.env[name] }

// try runs a command.
func (w *world) try(args ...string) (string, error) {
	w.t.Helper()
	var out strings.Builder
	err := program.Execute(w.t.Context(), args[0], kit.Call{Args: args[1:], Env: w.getenv, Out: &out})
	return out.String(), err
}

func (w *world) command(args ...string) string {
	w.t.Helper()
	out, err := w.try(args...)
	if err != nil {
		w.t.Fatalf("%q: %v", args, err)
	}
	return out
}

func (w *world) put(table string, items ...sluice.Item) {
	w.t.Helper()
	for _, it := range items {
		if err := w.store.Put(w.t.Context(), table, it); err != nil {
			w.t.Fatal(err)
		}
	}
}

// Places among the fixtures.
const (
	fxContact = iota
	fxEmail
	fxCall
	fxSearch
	_
	_
	fxAttempted
)

// ladder is a contact with an email whose template lacks an attribute, a webhook, and
// a call an hour later.
func (w *world) ladder() []sluice.Item {
	fx := manhunt.Fixtures()
	return []sluice.Item{
		fx[fxContact],
		fx[fxEmail].With(item.Map("template", item.Of(item.String("text", "{metadata.floor}")))),
		fx[fxEmail].With(item.String("SK", "hook"), item.String("type", "webhook"), item.String("name", "pager"), item.String("destination", w.hookURL), item.Number("order", "2")),
		fx[fxCall].With(item.Number("order", "3"), item.Number("waitSeconds", "3600")),
	}
}

func (w *world) search(id string) manhunt.Search {
	w.t.Helper()
	s, _, err := w.people.Search(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// posted returns the webhook's requests.
func (w *world) posted() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.posts, "\n")
}

// attempts are those of a search, by their steps: outcome, error, destination.
func (w *world) attempts(id string) string {
	w.t.Helper()
	_, all, _, err := w.people.SearchWithAttempts(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	lines := make([]string, len(all))
	for _, a := range all {
		lines[a.Step] = strings.TrimSpace(fmt.Sprint(a.Outcome, " ", a.Method.Type, " ", a.Method.Destination, " ", a.Error))
	}
	return strings.Join(lines, "\n")
}

// called returns the attempts of the ladder after both calls.
func (w *world) called() string {
	return "failed email z@example.com text: {metadata.floor} is missing: set it, or leave it out of the template\ncontacted webhook " + w.hookURL
}

func (w *world) await(what string, got func() string, want string) {
	w.t.Helper()
	localtest.Await(w.t, what, func() string {
		if now := got(); now != want {
			return "got " + now
		}
		return ""
	})
}

// incident is an incident that begins now, with changes.
func incident(oldnew ...string) sluice.Item {
	oldnew = append(oldnew, "2019-12-30T20:00:00Z", now().UTC().Format(time.RFC3339))
	return streamtest.Item(strings.NewReplacer(oldnew...).Replace(`{"entityType":{"S":"incident"},"PK":{"S":"I-1"},"SK":{"S":"incident"},"domainId":{"S":"db3280c"},"status":{"S":"open"},"stage":{"N":"1"},"stageStartedDatetime":{"S":"2019-12-30T20:00:00Z"},"stages":{"L":[{"M":{"contactId":{"S":"89fa8f8"},"limitSeconds":{"N":"600"}}}]}}`))
}

// daemon runs the program until stop is called or the test ends. stop returns
// its log.
func (w *world) daemon() (stop func() string) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	exit := make(chan int, 1)
	var log bytes.Buffer
	args := []string{"--start", "TRIM_HORIZON", "--listen", "off", "--state", filepath.Join(w.t.TempDir(), "state.db")}
	go func() { exit <- run.Run(ctx, app(time.Now), args, w.getenv, &log, &log) }()
	stop = sync.OnceValue(func() string {
		cancel()
		if code := <-exit; code != 0 || w.t.Failed() {
			w.t.Errorf("exit %d, log:\n%s", code, log.String())
		}
		return log.String()
	})
	w.t.Cleanup(func() { stop() })
	return stop
}
