//go:build integration

package queue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/queue"
)

// server is a queue of ElasticMQ and a consumer of it.
type server struct {
	t      *testing.T
	cfg    aws.Config
	client *awssqs.Client
	name   string
	url    *string

	mu    sync.Mutex
	calls []string
	hooks queue.Hooks
	stop  func()
}

func newServer(t *testing.T, suffix string) *server {
	t.Helper()
	s := &server{t: t, cfg: localtest.SQS(t), name: localtest.Name("queue") + suffix}
	s.client = awssqs.NewFromConfig(s.cfg)
	in := &awssqs.CreateQueueInput{QueueName: &s.name}
	if suffix != "" {
		in.Attributes = map[string]string{"FifoQueue": "true"}
	}
	out, err := s.client.CreateQueue(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	s.url = out.QueueUrl
	t.Cleanup(func() {
		if _, err := s.client.DeleteQueue(context.Background(), &awssqs.DeleteQueueInput{QueueUrl: s.url}); err != nil {
			t.Error(err)
		}
	})
	return s
}

// send sends "g/n", of group g in a FIFO queue.
func (s *server) send(ns ...string) {
	s.t.Helper()
	for _, n := range ns {
		in := &awssqs.SendMessageInput{
			QueueUrl: s.url, MessageBody: aws.String(fmt.Sprintf(`{"kind":"job","n":%q}`, n)),
			MessageAttributes: map[string]types.MessageAttributeValue{"a": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}}},
		}
		if strings.HasSuffix(s.name, ".fifo") {
			g, _, _ := strings.Cut(n, "/")
			in.MessageGroupId, in.MessageDeduplicationId = &g, aws.String(n)
		}
		if _, err := s.client.SendMessage(s.t.Context(), in); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *server) start(o queue.Options, handle func(ctx context.Context, n string, m sluice.Message) error) {
	s.t.Helper()
	r := router.New()
	r.Handle("job#MESSAGE", func(ctx context.Context, rec *sluice.Record) error {
		v, _ := rec.New.Lookup("n")
		m, _ := rec.Message()
		if string(m.Attributes["a"].Bytes) != "\x00\xff" || m.Received < 1 || m.Sent.IsZero() {
			s.t.Errorf("message %+v", m)
		}
		s.mu.Lock()
		s.calls = append(s.calls, v.Str())
		s.mu.Unlock()
		return handle(ctx, v.Str(), m)
	})
	o.Queues, o.Hooks, o.Logger, o.Visibility = []string{s.name}, s.hooks, slog.New(slog.NewTextHandler(io.Discard, nil)), 5*time.Second
	c, err := queue.New(s.cfg, r, o)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(s.stop)
}

// until waits for n calls of the handler, and returns all of them.
func (s *server) until(n int) string {
	s.t.Helper()
	var calls string
	localtest.Await(s.t, "calls of the handler", func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if calls = strings.Join(s.calls, " "); len(s.calls) >= n {
			return ""
		}
		return fmt.Sprintf("%s, want %d", calls, n)
	})
	return calls
}

// empty stops the consumer; nothing may be left.
func (s *server) empty() {
	s.t.Helper()
	s.stop()
	localtest.Await(s.t, "an empty queue", func() string {
		out, err := s.client.GetQueueAttributes(s.t.Context(), &awssqs.GetQueueAttributesInput{QueueUrl: s.url, AttributeNames: []types.QueueAttributeName{"All"}})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"} {
			if n := out.Attributes[name]; n != "0" {
				return name + " is " + n
			}
		}
		return ""
	})
}

// Many messages are deleted in few calls. A failed message comes again.
func TestServerStandard(t *testing.T) {
	s := newServer(t, "")
	for i := range 30 {
		s.send(fmt.Sprint(i))
	}
	var mu sync.Mutex
	deletes := 0
	s.hooks.Deleted = func(string, queue.Call) { mu.Lock(); deletes++; mu.Unlock() }
	s.start(queue.Options{}, func(_ context.Context, n string, m sluice.Message) error {
		if n == "7" && m.Received == 1 {
			return errors.New("down")
		}
		return nil
	})
	s.until(31)
	s.empty()
	if deletes > 25 {
		t.Errorf("%d calls delete 30 messages", deletes)
	}
}

// Groups keep their order over a failure.
func TestServerFIFO(t *testing.T) {
	s := newServer(t, ".fifo")
	s.send("a/1", "b/1", "a/2", "a/3", "b/2")
	s.start(queue.Options{}, func(_ context.Context, n string, m sluice.Message) error {
		if n == "a/2" && m.Received < 3 {
			return sluice.RetryAfter(time.Second, errors.New("down"))
		}
		return nil
	})
	got := map[byte]string{}
	for _, n := range strings.Fields(s.until(7)) {
		got[n[0]] += n + " "
	}
	if got['a'] != "a/1 a/2 a/2 a/2 a/3 " || got['b'] != "b/1 b/2 " {
		t.Errorf("handled %v", got)
	}
	s.empty()
}

// A handler that takes longer than the visibility keeps its message: it is
// extended, three times here, and nobody else gets it.
func TestServerExtends(t *testing.T) {
	for _, suffix := range []string{"", ".fifo"} {
		s := newServer(t, suffix)
		s.send("a/1", "a/2")
		extended := make(chan struct{}, 100)
		s.hooks.Changed = func(_ string, c queue.Call) {
			if c.Err == nil && c.Failed == 0 {
				extended <- struct{}{}
			}
		}
		s.start(queue.Options{}, func(ctx context.Context, n string, _ sluice.Message) error {
			for range 3 {
				if n == "a/1" {
					select {
					case <-extended:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
			}
			return nil
		})
		if got := s.until(2); len(strings.Fields(got)) != 2 {
			t.Errorf("handled %s", got)
		}
		s.empty() // once the handler has returned
		if got := s.until(2); len(strings.Fields(got)) != 2 {
			t.Errorf("handled %s", got)
		}
	}
}
