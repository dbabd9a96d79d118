//go:build integration

package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/sqs"
)

func init() {
	// sinks prints the records that its routes handle. Its index is down while a file
	// is missing.
	children["sinks"] = App{Name: "sinks", Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
		s.Check("index", func(context.Context) error {
			if _, err := os.Stat(s.Env("INDEX_FILE")); err != nil {
				return refused
			}
			return nil
		}, "search", "both")
		return twoSinks(func(route, id string) { fmt.Println("handled", route, id) }), nil
	}}
}

func init() {
	// sending sends all to a queue. SQS is down while a file is missing.
	children["sending"] = App{Name: "sending", Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
		q, err := sqs.New(s.AWS("sqs"), s.Env("MISSING_QUEUE"), sqs.Options{})
		if err != nil {
			return nil, err
		}
		s.Check("letters", func(ctx context.Context) error {
			if _, err := os.Stat(s.Env("QUEUE_FILE")); err != nil {
				return refused
			}
			return q.Check(ctx)
		})
		r := router.New()
		r.Handle("*#* job#MESSAGE", func(ctx context.Context, rec *sluice.Record) error {
			if err := q.Send(ctx, sluice.Message{Body: "x"}); err != nil {
				return err
			}
			_, err := fmt.Println("sent", rec.EventName)
			return err
		})
		return r, nil
	}}
}

// Records of a held route survive a kill -9 and an orderly stop. The daemon handles
// them when the sink is back.
func TestHeldForSinkAndKilled(t *testing.T) {
	tb := newTable(t, images)
	folder := t.TempDir()
	file, state := filepath.Join(folder, "index"), filepath.Join(folder, "state.db")
	tb.put("one")
	start := func() *child {
		c := startChild(t, "sinks", []string{"INDEX_FILE=" + file}, tb.args(state, "--start", "TRIM_HORIZON", "--grace", "10s")...)
		c.until("handled alert one", 1)
		if code, body := c.ask("GET", "/readyz"); code != 503 || !strings.Contains(body, "sink index is down since ") || !strings.Contains(body, "connection refused") {
			t.Errorf("/readyz: %d %s", code, body)
		}
		if code, body := c.ask("GET", "/startedz"); code != 200 {
			t.Errorf("/startedz: %d %s", code, body)
		}
		return c
	}
	c := start()
	c.signal(syscall.SIGKILL)
	c.exit()
	c = start()
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, c.output())
	}
	c = start()
	if strings.Contains(c.output(), "handled search") || strings.Contains(c.output(), "handled both") {
		t.Errorf("a held route was called:\n%s", c.output())
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.until("handled search one", 1)
	c.until("handled both one", 1)
	tb.put("two")
	c.until("handled both two", 1)
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, c.output())
	}

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	c = startChild(t, "sinks", []string{"INDEX_FILE=" + file, "SLUICE_REQUIRE_SINKS=true"}, tb.args(state)...)
	if code := c.exit(); code != 1 || !strings.Contains(c.output(), "sinks: dial tcp: connection refused") {
		t.Errorf("exit %d with --require-sinks:\n%s", code, c.output())
	}
}

// A queue answers again and is none: its route stays held, for messages, too, which are
// not even received. It goes on once the queue is made.
func TestCheckFailsWhenTheSinkIsBack(t *testing.T) {
	tb, q := newTable(t, images), newQueue(t)
	file := filepath.Join(t.TempDir(), "up")
	letters := localtest.Name("run")
	tb.put("one")
	q.send(`{"kind":"job","n":1}`)
	env := append(slices.Clone(q.env), "QUEUE_FILE="+file, "MISSING_QUEUE="+letters)
	c := startChild(t, "sending", env, tb.args(filepath.Join(t.TempDir(), "state.db"), "--start", "TRIM_HORIZON", "--queue", q.name)...)
	unready := func(want string) {
		t.Helper()
		localtest.Await(t, want, func() string {
			code, body := c.ask("GET", "/readyz")
			if code != 503 || !strings.Contains(body, want) {
				return fmt.Sprint(code, body)
			}
			return ""
		})
	}
	unready("sink letters is down since ")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	unready("sink letters fails its check since ")
	c.until("the sink answers, and its check fails", 1)
	if _, body := c.ask("GET", "/readyz"); !strings.Contains(body, "QueueDoesNotExist") && !strings.Contains(body, "there is no queue") {
		t.Errorf("/readyz does not say why: %s", body)
	}
	if code, body := c.ask("GET", "/deadletters"); code != 200 || !strings.Contains(body, `"deadLetters":[]`) {
		t.Errorf("/deadletters: %d %s", code, body)
	}
	q.holds("1") // visible
	if strings.Contains(c.output(), "sent") {
		t.Errorf("a held route was called:\n%s", c.output())
	}
	out, err := q.client.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: &letters})
	if err != nil {
		t.Fatal(err)
	}
	defer q.client.DeleteQueue(context.Background(), &awssqs.DeleteQueueInput{QueueUrl: out.QueueUrl}) //nolint:errcheck // of a test
	c.until("sent INSERT", 1)
	c.until("sent MESSAGE", 1)
	q.empty()
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, c.output())
	}
}
