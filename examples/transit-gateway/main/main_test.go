//go:build integration

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/examples/internal/kit"
	transitgateway "github.com/sluicehq/sluice/examples/transit-gateway"
	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/runtimeapi"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/streamtest"
)

// world is tables, an index and a queue of the test's own, the first two made by
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
	name := localtest.Name("gateway")
	w := &world{t: t, queues: awssqs.NewFromConfig(q)}
	made, err := w.queues.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	w.env = map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
		"TGW_PREFIX": name + "-", "TGW_INDEX": name, "TGW_REPLICAS": "0", "TGW_QUEUE": *made.QueueUrl,
		"SLUICE_ENDPOINT_DYNAMODB": *db.BaseEndpoint, "SLUICE_ENDPOINT_SQS": *q.BaseEndpoint,
		"SLUICE_ENDPOINT_OPENSEARCH": localtest.OpenSearchURL(t),
	}
	for name, value := range w.env {
		t.Setenv(name, value) // the SDK reads it
	}
	for range 2 {
		var out strings.Builder
		if err := create(t.Context(), kit.Call{Env: w.getenv, Out: &out}); err != nil || !strings.Contains(out.String(), "index "+name+", are there") {
			t.Fatal(out.String(), err)
		}
	}
	if w.client, err = kit.Cluster(w.getenv, "TGW", db); err != nil {
		t.Fatal(err)
	}
	if w.store, err = dynamodb.New(db, dynamodb.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the test's own context has ended by now
		ctx := context.Background()
		for _, table := range []string{"tgw", "tgw_by_rtb", "tgw_name", "tgw_id"} {
			name := w.env["TGW_PREFIX"] + table
			if _, err := awsdynamodb.NewFromConfig(db).DeleteTable(ctx, &awsdynamodb.DeleteTableInput{TableName: &name}); err != nil {
				t.Error(err)
			}
		}
		if err := w.client.Call(ctx, http.MethodDelete, "/"+w.env["TGW_INDEX"], nil, nil); err != nil {
			t.Error(err)
		}
		if _, err := w.queues.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: made.QueueUrl}); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) getenv(name string) string { return w.env[name] }

func (w *world) put(f transitgateway.Fixture) {
	w.t.Helper()
	if err := w.store.Put(w.t.Context(), w.env["TGW_PREFIX"]+f.Table, f.Item); err != nil {
		w.t.Fatal(err)
	}
}

// document is the version of that of the fixtures' gateway.
func (w *world) document() string {
	var got []byte
	err := w.client.Call(w.t.Context(), http.MethodGet, "/"+w.env["TGW_INDEX"]+"/_doc/111122223333%7Ctgw-0a1?filter_path=_version", nil, &got)
	if refused, ok := errors.AsType[*opensearch.StatusError](err); ok && refused.Status == http.StatusNotFound {
		return "none"
	}
	if err != nil {
		return err.Error()
	}
	return string(got)
}

const document = `{"_version":1786946146795520002}` // of the last fixture

// lost is whether the claim without a gateway is there.
func (w *world) lost() bool {
	w.t.Helper()
	it, err := w.store.Get(w.t.Context(), w.env["TGW_PREFIX"]+"tgw_name", item.Of(item.String("name_key", "111122223333#lost")))
	if err != nil {
		w.t.Error(err)
	}
	return it.Exists()
}

// check is the message to the janitor, due.
func (w *world) check() string {
	return string(message.Check{
		Kind: "tgw.name", Table: w.env["TGW_PREFIX"] + "tgw_name", Key: item.Of(item.String("name_key", "111122223333#lost")),
		NotBefore: time.UnixMilli(1704164645000), DedupeKey: "111122223333#lost#tgw-0ff",
	}.Body())
}

// The program as a daemon reads both streams and works off the queue.
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

	for _, f := range transitgateway.Fixtures() {
		w.put(f)
	}
	localtest.Await(t, "the document", func() string {
		if got := w.document(); got != document {
			return got
		}
		return ""
	})
	const delayed = types.QueueAttributeNameApproximateNumberOfMessagesDelayed
	localtest.Await(t, "the janitor's messages", func() string {
		out, err := w.queues.GetQueueAttributes(t.Context(), &awssqs.GetQueueAttributesInput{QueueUrl: aws.String(w.env["TGW_QUEUE"]), AttributeNames: []types.QueueAttributeName{delayed}})
		if err != nil {
			return err.Error()
		}
		if n := out.Attributes[string(delayed)]; n != "2" {
			return n + " are delayed"
		}
		return ""
	})
	if _, err := w.queues.SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: aws.String(w.env["TGW_QUEUE"]), MessageBody: aws.String(w.check())}); err != nil {
		t.Fatal(err)
	}
	localtest.Await(t, "the release of the name", func() string {
		if w.lost() {
			return "it is claimed"
		}
		return ""
	})
	stop()
}

// The same program is the function, of streams and queue.
func TestFunction(t *testing.T) {
	w := newWorld(t)
	binary := filepath.Join(t.TempDir(), "bootstrap")
	if err := localstack.Build(t.Context(), binary, "-tags", "lambda.norpc", "."); err != nil {
		t.Fatal(err)
	}
	proxy := streamtest.NewProxy(t, w.env["SLUICE_ENDPOINT_OPENSEARCH"])
	var log bytes.Buffer
	env := []string{"TGW_OPENSEARCH=" + proxy.URL()}
	for name, value := range w.env {
		env = append(env, name+"="+value)
	}
	fn, err := runtimeapi.Start(t.Context(), runtimeapi.Command{Path: binary, Stdout: &log, Stderr: &log, Env: env})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	invoke := func(event []byte, failures string) {
		t.Helper()
		answer, err := fn.Invoke(t.Context(), event, localtest.Patience)
		if want := `{"batchItemFailures":[` + failures + `]}`; err != nil || string(answer.Payload) != want {
			t.Errorf("answer %s %s, %v; want %s\n%s", answer.Payload, answer.Message, err, want, log.String())
		}
	}
	fx, key := transitgateway.Fixtures(), streamtest.WithKeys("owner_id", "tgw_id")
	tgw := w.env["TGW_PREFIX"] + "tgw"
	changes := []sluice.Record{
		streamtest.Insert(tgw, fx[0].Item, key),
		streamtest.Modify(tgw, fx[0].Item, fx[1].Item, key),
		streamtest.Modify(tgw, fx[1].Item, fx[2].Item, key),
	}

	// While OpenSearch is down the rows by route table go on.
	w.put(fx[0])
	back := proxy.Fail(streamtest.ProxyFault{Drop: true})
	invoke(streamtest.Event(changes...), `{"itemIdentifier":"`+string(changes[0].Sequence)+`"}`)
	if all, err := transitgateway.New(w.store, w.env["TGW_PREFIX"], nil).OfRouteTable(t.Context(), "rtb-1"); err != nil || len(all) != 1 {
		t.Errorf("gateways of the route table %v, %v", all, err)
	}
	back()
	invoke(streamtest.Event(changes...), "")
	if got := w.document(); got != document {
		t.Error(got)
	}
	w.put(fx[4])
	invoke(queueEvent(t, w.check()), "")
	if w.lost() {
		t.Error("the name is claimed")
	}
	if _, err := fn.Stop(); err != nil {
		t.Error(err)
	}
}

// queueEvent returns Lambda's event for messages.
func queueEvent(t *testing.T, body string) []byte {
	t.Helper()
	m := sluice.Message{ID: "m1", Body: body, Received: 1, Sent: time.Now()}
	event := struct{ Records []json.RawMessage }{[]json.RawMessage{m.Record("arn:aws:sqs:us-east-1:000000000000:janitor").Raw()}}
	data, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCommandsRefuse(t *testing.T) {
	for _, tt := range []struct {
		command, replicas, want string
	}{
		{"create now", "", "takes no arguments"},
		{"create", "-1", `TGW_REPLICAS="-1": want how many`},
		{"foo", "", `unknown command "foo"; commands are create. Without one, flags alone run the daemon`},
	} {
		var usage *kit.UsageError
		words := strings.Fields(tt.command)
		env := func(name string) string { return map[string]string{"TGW_REPLICAS": tt.replicas}[name] }
		if err := program.Execute(t.Context(), words[0], kit.Call{Args: words[1:], Env: env, Out: io.Discard}); !errors.As(err, &usage) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	var out strings.Builder
	if err := program.Execute(t.Context(), "create", kit.Call{Args: []string{"--help"}, Out: &out}); err != nil || !strings.HasPrefix(out.String(), "transit-gateway create: make the tables") {
		t.Errorf("%q, %v", out.String(), err)
	}
}
