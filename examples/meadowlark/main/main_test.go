//go:build integration

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/meadowlark"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/streamtest"
)

// world is a table, queues and indices on real servers, the cluster behind a
// proxy.
type world struct {
	t      *testing.T
	env    map[string]string
	proxy  *streamtest.Proxy
	client *opensearch.Client
	queues *awssqs.Client
	store  *dynamodb.Store
	table  string
	state  string // file of the daemon
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	db, sqs := localtest.DynamoDB(t), localtest.SQS(t)
	w := &world{
		t: t, table: localtest.Name("meadowlark"), state: filepath.Join(t.TempDir(), "state.db"), queues: awssqs.NewFromConfig(sqs),
		proxy: streamtest.NewProxy(t, localtest.OpenSearchURL(t)),
	}
	w.env = map[string]string{
		"SLUICE_ENDPOINT_DYNAMODB": *db.BaseEndpoint, "SLUICE_ENDPOINT_SQS": *sqs.BaseEndpoint, "SLUICE_TABLES": w.table,
		"MEADOWLARK_OPENSEARCH": w.proxy.URL(), "MEADOWLARK_INDEX_PREFIX": localtest.Name("m") + "-", "MEADOWLARK_REPLICAS": "0",
		"MEADOWLARK_ALERTS": w.queue("alerts"), "MEADOWLARK_CHECKS": w.queue("checks"),
	}
	var err error
	if w.client, err = opensearch.Connect(opensearch.Connection{URLs: []string{localtest.OpenSearchURL(t)}}); err != nil {
		t.Fatal(err)
	}
	if w.store, err = dynamodb.New(db, dynamodb.Options{}); err != nil {
		t.Fatal(err)
	}
	if got, err := w.command("create"); err != nil || got != "table "+w.table+" and the template of its indices are there\n" {
		t.Fatal(got, err)
	}
	t.Cleanup(func() { // the test's own context has ended by now
		ctx := context.Background()
		if _, err := awsdynamodb.NewFromConfig(db).DeleteTable(ctx, &awsdynamodb.DeleteTableInput{TableName: &w.table}); err != nil {
			t.Error(err)
		}
		prefix := w.env["MEADOWLARK_INDEX_PREFIX"]
		if err := w.client.Call(ctx, "DELETE", "/_index_template/"+prefix+"meadowlark", nil, nil); err != nil {
			t.Error(err)
		}
		var indices map[string]any
		if err := w.client.Call(ctx, "GET", "/"+prefix+"*", nil, &indices); err != nil {
			t.Error(err)
		}
		for name := range indices {
			if err := w.client.Call(ctx, "DELETE", "/"+url.PathEscape(name), nil, nil); err != nil {
				t.Error(err)
			}
		}
	})
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

func (w *world) command(args ...string) (string, error) {
	w.t.Helper()
	var out strings.Builder
	err := program.Execute(w.t.Context(), args[0], kit.Call{Args: args[1:], Env: w.getenv, Out: &out})
	return out.String(), err
}

// doc is the version of a document of the fixtures, 0 if there is none, and the
// name of the institution, if it is one.
func (w *world) doc(it int) (version int64, name string) {
	w.t.Helper()
	fx := meadowlark.Fixtures()[it]
	pk, _ := fx.Lookup("pk")
	index := w.env["MEADOWLARK_INDEX_PREFIX"] + strings.NewReplacer("#", "$", ".", "-").Replace(strings.ToLower(pk.Str()))
	var answer struct {
		Version int64 `json:"_version"`
		Source  struct{ NameOfInstitution string }
	}
	var body []byte
	err := w.client.Call(w.t.Context(), "GET", "/"+url.PathEscape(index)+"/_doc/"+writer.EntityID(fx), nil, &body)
	var status *opensearch.StatusError
	if errors.As(err, &status) && (status.Status == 404 || status.Status == 503) { // its index is about to be made
		return 0, ""
	}
	if err == nil {
		err = json.Unmarshal(bytes.Replace(body, []byte(`"_source"`), []byte(`"Source"`), 1), &answer)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.Version, answer.Source.NameOfInstitution
}

// Places among the fixtures.
const (
	school = 3
	course = 5
	fref   = 6
)

// TestDaemon runs the program: what the writer writes comes out of OpenSearch,
// which is down for a while; what goes past the writer is told.
func TestDaemon(t *testing.T) {
	w := newWorld(t)
	var seeded strings.Builder
	for _, d := range meadowlark.Documents() {
		fmt.Fprintf(&seeded, "%s %s\n", d.Type, d.ID())
	}
	w.proxy.Fail(streamtest.ProxyFault{Path: "/_bulk", Times: 3, Drop: true})
	stop := w.daemon()
	if got, err := w.command("seed"); err != nil || got != seeded.String() {
		t.Fatal(got, err)
	}
	if got, err := w.command("seed"); err != nil || strings.Count(got, " is there\n") != 4 {
		t.Fatal(got, err)
	}
	localtest.Await(t, "four documents", func() string {
		var versions []int64
		for i, it := range meadowlark.Fixtures() {
			if writer.Kind(it) == writer.Entity {
				v, _ := w.doc(i)
				versions = append(versions, v)
			}
		}
		for _, v := range versions {
			if v == 0 {
				return fmt.Sprint(versions)
			}
		}
		return ""
	})
	if c := w.proxy.Counts(); c.Dropped != 3 {
		t.Errorf("%+v", c)
	}

	fx := meadowlark.Fixtures()
	pk, _ := fx[school].Lookup("pk")
	got, err := w.command("delete", pk.Str(), writer.EntityID(fx[school]))
	want := `409 {"error":"Unable to delete this item because there are foreign keys pointing to it","foreignKeys":[{"NaturalKey":"NK#courseCode=1234#educationOrganizationReference.educationOrganizationId=122","Type":"TYPE#Ed-Fi#3.3.1-b#Course"}]}` + "\n"
	if !errors.Is(err, writer.ErrReferenced) || got != want {
		t.Errorf("%s%v, want %s", got, err, want)
	}

	d, _, err := w.writer().Document(t.Context(), pk.Str(), writer.EntityID(fx[school]))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.Delete(t.Context(), w.table, fx[school].Only("pk", "sk")); err != nil {
		t.Fatal(err)
	}
	alert := w.alert()
	if want := fmt.Sprintf(`"dedupeKey":"%s#%d"}`, d.ID(), d.Rev); !strings.HasSuffix(alert, want) || !strings.Contains(alert, "courseCode=1234") {
		t.Errorf("%s, want …%s", alert, want)
	}
	localtest.Await(t, "the document goes", func() string {
		v, name := w.doc(school)
		if v == 0 {
			return ""
		}
		return name
	})

	// A reference to what is not there is looked at again, a minute later.
	if err := w.store.Write(t.Context(), dynamo.Put(w.table, meadowlark.Fixtures()[fref].With(item.String("sk", "TREF#ID#nobody"), item.Map("to", writer.EntityKey("TYPE#a", "nobody"))))); err != nil {
		t.Fatal(err)
	}
	localtest.Await(t, "a check", func() string {
		out, err := w.queues.GetQueueAttributes(t.Context(), &awssqs.GetQueueAttributesInput{QueueUrl: aws.String(w.env["MEADOWLARK_CHECKS"]), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameApproximateNumberOfMessagesDelayed}})
		if err != nil || out.Attributes["ApproximateNumberOfMessagesDelayed"] != "1" {
			return fmt.Sprint(out.Attributes, err)
		}
		return ""
	})

	if got, err := w.command("delete", "TYPE#Ed-Fi#3.3.1-b#Course", writer.EntityID(fx[course])); err != nil || got != "204\n" {
		t.Error(got, err)
	}
	localtest.Await(t, "the course goes", func() string {
		v, _ := w.doc(course)
		if v == 0 {
			return ""
		}
		return fmt.Sprint(v)
	})
	stop()
}

func (w *world) writer() *writer.Writer {
	w.t.Helper()
	wr, err := open(w.t.Context(), w.getenv)
	if err != nil {
		w.t.Fatal(err)
	}
	return wr
}

// daemon runs the program until it is stopped.
func (w *world) daemon() (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	exit := make(chan int, 1)
	var log bytes.Buffer
	args := []string{"--start", "TRIM_HORIZON", "--listen", "off", "--state", w.state}
	go func() { exit <- run.Run(ctx, app(w.getenv), args, w.getenv, &log, &log) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if code := <-exit; code != 0 || w.t.Failed() {
			w.t.Errorf("exit %d, log:\n%s", code, log.String())
		}
	}
	w.t.Cleanup(stop)
	return stop
}

func TestCommandsRefuse(t *testing.T) {
	w := &world{t: t, env: map[string]string{"MEADOWLARK_REPLICAS": "many"}}
	for args, want := range map[string]string{
		"create now":   "takes no arguments",
		"create":       `MEADOWLARK_REPLICAS="many"`,
		"seed it":      "takes no arguments",
		"delete":       "want delete TYPE ID",
		"delete a b c": "want delete TYPE ID",
		"foo":          `unknown command "foo"; commands are create, delete, seed. Without one, flags alone run the daemon`,
	} {
		var usage *kit.UsageError
		if _, err := w.command(strings.Fields(args)...); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

func TestHelp(t *testing.T) {
	w := &world{t: t}
	for name, c := range program.Commands {
		if got, err := w.command(name, "--help"); err != nil || got != "meadowlark "+c.Usage+": "+c.Does+"\n\nExample:\n  meadowlark "+c.Example+"\n" || !strings.Contains(program.Help(), "  "+c.Usage+"\n") {
			t.Errorf("%s: %q, %v, help %s", name, got, err, program.Help())
		}
	}
}
