//go:build integration

package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state/boltstate"
)

func init() {
	// both handles changes and messages.
	children["both"] = App{Name: "both", Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
		r := router.New()
		r.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
			id, _ := rec.Keys.Lookup("id")
			_, err := fmt.Println("change of", id.Str())
			return err
		})
		r.Handle("job#MESSAGE", func(_ context.Context, rec *sluice.Record) error {
			n, _ := rec.New.Lookup("n")
			if n.Str() == "0" {
				return sluice.Permanent(fmt.Errorf("never"))
			}
			_, err := fmt.Println("message", n.Str(), "of", s.Queues)
			return err
		})
		return r, nil
	}}
}

func init() {
	// jobless fails for every message.
	children["jobless"] = App{Name: "jobless", Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
		r := router.New()
		r.Handle("job#MESSAGE", func(context.Context, *sluice.Record) error { return errors.New("the sink is down") }, router.Name("work"))
		return r, nil
	}}
}

type testQueue struct {
	t      *testing.T
	client *awssqs.Client
	name   string
	url    *string
	env    []string
}

func newQueue(t *testing.T) testQueue {
	t.Helper()
	noAWS(t)
	cfg := localtest.SQS(t)
	q := testQueue{t: t, client: awssqs.NewFromConfig(cfg), name: localtest.Name("run"), env: []string{"SLUICE_ENDPOINT_SQS=" + *cfg.BaseEndpoint}}
	out, err := q.client.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: &q.name})
	if err != nil {
		t.Fatal(err)
	}
	q.url = out.QueueUrl
	t.Cleanup(func() {
		if _, err := q.client.DeleteQueue(context.Background(), &awssqs.DeleteQueueInput{QueueUrl: q.url}); err != nil {
			t.Error(err)
		}
	})
	return q
}

func (q testQueue) send(bodies ...string) {
	q.t.Helper()
	for _, b := range bodies {
		if _, err := q.client.SendMessage(q.t.Context(), &awssqs.SendMessageInput{QueueUrl: q.url, MessageBody: aws.String(b)}); err != nil {
			q.t.Fatal(err)
		}
	}
}

// empty fails when there are messages, visible or not.
func (q testQueue) empty() {
	q.t.Helper()
	q.holds("0")
}

// holds fails unless there are so many messages, all of them visible.
func (q testQueue) holds(visible string) {
	q.t.Helper()
	localtest.Await(q.t, "the messages", func() string {
		out, err := q.client.GetQueueAttributes(q.t.Context(), &awssqs.GetQueueAttributesInput{QueueUrl: q.url, AttributeNames: []types.QueueAttributeName{"All"}})
		if err != nil {
			q.t.Fatal(err)
		}
		for name, want := range map[string]string{"ApproximateNumberOfMessages": visible, "ApproximateNumberOfMessagesNotVisible": "0"} {
			if n := out.Attributes[name]; n != want {
				return fmt.Sprintf("%s is %s, want %s", name, n, want)
			}
		}
		return ""
	})
}

// A daemon reads a table and consumes a queue, with one state file; poison of
// the queue is in its dead letters.
func TestTableAndQueue(t *testing.T) {
	tb, q := newTable(t, images), newQueue(t)
	state := filepath.Join(t.TempDir(), "state.db")
	tb.put("a", "b")
	q.send(`{"kind":"job","n":1}`, `{"kind":"job","n":0}`)
	c := startChild(t, "both", q.env, tb.args(state, "--start", "TRIM_HORIZON", "--queue", q.name)...)
	c.until("change of ", 2)
	c.until("message 1 of ["+q.name+"]", 1)
	c.until("message parked as a dead letter", 1)
	tb.put("c")
	q.send(`{"kind":"job","n":2}`)
	c.until("change of c", 1)
	c.until("message 2", 1)
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, c.output())
	}
	q.empty()
	store, err := boltstate.Open(state, boltstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	letters, _, err := deadletter.NewBox(store, "both").List(t.Context(), "", 10)
	if err != nil || len(letters) != 1 || letters[0].Table != q.name || letters[0].EventName != sluice.Delivery || letters[0].Route != "job#MESSAGE" {
		t.Fatalf("dead letters %+v, %v", letters, err)
	}
	if m, ok := letters[0].Record().Message(); !ok || m.Body != `{"kind":"job","n":0}` {
		t.Errorf("parked message %+v", m)
	}
}

// A worker needs neither a table nor --start.
func TestQueueAlone(t *testing.T) {
	q := newQueue(t)
	q.send(`{"kind":"job","n":1}`)
	c := startChild(t, "both", q.env, "--queue", *q.url, "--state", filepath.Join(t.TempDir(), "state.db"), "--listen", "127.0.0.1:0")
	c.until("message 1", 1)
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, c.output())
	}
	q.empty()
}

// A route that fails for every message is reported in the same places as a stream's
// route.
func TestOutageOfAQueueAlone(t *testing.T) {
	q := newQueue(t)
	for n := range 10 {
		q.send(fmt.Sprintf(`{"kind":"job","n":%d}`, n))
	}
	c := startChild(t, "jobless", q.env, "--queue", q.name, "--state", filepath.Join(t.TempDir(), "state.db"), "--listen", "127.0.0.1:0", "--grace", "1s")
	c.until(`not ready" reasons="queue `+q.name+`: route \"work\" fails for every message since `, 1)
	if code, body := c.ask("GET", "/readyz"); code != 503 || !strings.Contains(body, "the sink is down") {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if _, body := c.ask("GET", "/"); !strings.Contains(body, "\nroute work: outage since ") {
		t.Errorf("status:\n%s", body)
	}
	if _, body := c.ask("GET", "/metrics"); !strings.Contains(body, "\nsluice_route_state{route=\"work\",state=\"outage\"} 1\n") {
		t.Error("metrics say that the route works")
	}
	c.signal(syscall.SIGTERM)
	c.exit()
}

// When one of the two cannot start, neither runs, and no message is received.
func TestOneCannotStart(t *testing.T) {
	tb, q := newTable(t, images), newQueue(t)
	q.send(`{"kind":"job","n":1}`)
	endpoint := os.Getenv(endpointEnv)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no such table": {[]string{"--table", "no-such-table", "--queue", q.name, "--start", "LATEST"}, `table "no-such-table"`},
		"no such queue": {[]string{"--table", tb.name, "--queue", "no-such-queue", "--start", "LATEST"}, `queue "no-such-queue"`},
		"no start":      {[]string{"--table", tb.name, "--queue", q.name}, "--start"},
	} {
		args := append(tt.args, "--state", filepath.Join(t.TempDir(), "state.db"), "--listen", "off", "--endpoint-dynamodb", endpoint)
		c := startChild(t, "both", q.env, args...)
		if code := c.exit(); code != exitFailed {
			t.Errorf("%s: exit code %d", name, code)
		}
		c.until(tt.want, 1)
	}
	q.holds("1")
}
