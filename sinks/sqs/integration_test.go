//go:build integration

package sqs_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/tally"
	"github.com/sluicehq/sluice/sinks/sqs"
)

// server is the queue service that the tests run against.
type server struct {
	cfg    aws.Config
	client *awssqs.Client
}

func connect(t *testing.T) *server {
	t.Helper()
	cfg := localtest.SQS(t)
	return &server{cfg, awssqs.NewFromConfig(cfg)}
}

// create makes a queue with a name of its own and returns the name.
func (s *server) create(t *testing.T, suffix string, attributes map[string]string) string {
	t.Helper()
	name := localtest.Name("test") + suffix
	out, err := s.client.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := s.client.DeleteQueue(context.Background(), &awssqs.DeleteQueueInput{QueueUrl: out.QueueUrl}); err != nil {
			t.Error(err)
		}
	})
	return name
}

func (s *server) open(t *testing.T, name string, o sqs.Options) *sqs.Queue {
	t.Helper()
	q, err := sqs.New(s.cfg, name, o)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// receive takes n messages out of the queue, waiting for them.
func (s *server) receive(t *testing.T, name string, n int) (ms []types.Message) {
	t.Helper()
	url, err := s.client.GetQueueUrl(t.Context(), &awssqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	localtest.Await(t, "messages", func() string {
		out, err := s.client.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{
			QueueUrl: url.QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 5, MessageAttributeNames: []string{"All"},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			ms = append(ms, m)
			if _, err := s.client.DeleteMessage(t.Context(), &awssqs.DeleteMessageInput{QueueUrl: url.QueueUrl, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
		if len(ms) < n {
			return fmt.Sprintf("%d of %d", len(ms), n)
		}
		return ""
	})
	if len(ms) != n {
		t.Fatalf("%d messages received, want %d", len(ms), n)
	}
	return ms
}

func bodies(ms []types.Message) (out []string) {
	for _, m := range ms {
		out = append(out, *m.Body)
	}
	return out
}

func TestServerTakesMessages(t *testing.T) {
	s := connect(t)
	name := s.create(t, "", nil)
	var counts tally.Tally
	q := s.open(t, name, sqs.Options{Linger: 100 * time.Millisecond, Metrics: &counts})
	if err := q.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	var want []string
	var wg sync.WaitGroup
	for i := range 30 {
		body := fmt.Sprintf("body %02d é\U0001F600 <&>\t\"", i)
		want = append(want, body)
		wg.Go(func() {
			m := sluice.Message{Body: body, Attributes: map[string]sluice.MessageAttribute{
				"s": {Value: body}, "n": {Type: "Number", Value: "-1.5"}, "b": {Type: "Binary", Bytes: []byte{0, 1, 255}},
			}}
			if err := q.Send(t.Context(), m); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ms := s.receive(t, name, 30)
	got := bodies(ms)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for _, m := range ms {
		a := m.MessageAttributes
		if *a["s"].StringValue != *m.Body || *a["n"].StringValue != "-1.5" || *a["n"].DataType != "Number" || !slices.Equal(a["b"].BinaryValue, []byte{0, 1, 255}) {
			t.Errorf("attributes of %q: %v", *m.Body, a)
		}
	}
	if requests := len(counts.Values("sluice_commit_batch_items", "sqs")); requests < 3 || requests > 30 {
		t.Errorf("%d requests for 30 messages", requests)
	}
}

func TestServerDelays(t *testing.T) {
	s := connect(t)
	name := s.create(t, "", nil)
	q := s.open(t, name, sqs.Options{})
	start := time.Now()
	if errs := q.SendAll(t.Context(), []sluice.Message{{Body: "late", Delay: 1500 * time.Millisecond}, {Body: "now"}, {Body: "never", Delay: 15 * time.Minute}}); errs != nil {
		t.Fatal(errs)
	}
	ms := s.receive(t, name, 2)
	if got := bodies(ms); !slices.Equal(got, []string{"now", "late"}) {
		t.Errorf("got %q", got)
	}
	if took := time.Since(start); took < 2*time.Second {
		t.Errorf("1.5s were not rounded up: late came after %v", took)
	}
}

func TestServerKeepsGroupsInOrder(t *testing.T) {
	s := connect(t)
	name := s.create(t, ".fifo", map[string]string{"FifoQueue": "true"})
	if err := s.open(t, name, sqs.Options{}).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "without content-based deduplication") {
		t.Errorf("messages without an id: %v", err)
	}
	q := s.open(t, name, sqs.Options{DeduplicationIDs: true})
	if err := q.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	var ms []sluice.Message
	want := map[string][]string{}
	for i := range 24 {
		g := fmt.Sprint("g", i%3)
		body := fmt.Sprintf("%s/%02d", g, i)
		ms = append(ms, sluice.Message{Body: body, GroupID: g, DeduplicationID: body})
		want[g] = append(want[g], body)
	}
	for range 2 { // the second time they are duplicates
		if errs := q.SendAll(t.Context(), ms); errs != nil {
			t.Fatal(errs)
		}
	}
	got := map[string][]string{}
	for _, body := range bodies(s.receive(t, name, len(ms))) {
		g, _, _ := strings.Cut(body, "/")
		got[g] = append(got[g], body)
	}
	for g := range want {
		if !slices.Equal(got[g], want[g]) {
			t.Errorf("group %s: %q, want %q", g, got[g], want[g])
		}
	}
}

func TestServerLimits(t *testing.T) {
	s := connect(t)
	name := s.create(t, "", nil)
	q := s.open(t, name, sqs.Options{})
	ms := []sluice.Message{
		{Body: strings.Repeat("a", 1<<20)},
		{Body: strings.Repeat("b", 600<<10)},
		{Body: strings.Repeat("c", 600<<10)}, // not in one request with b
		{Body: strings.Repeat("d", 1<<20+1)},
		{Body: "e"},
	}
	errs := q.SendAll(t.Context(), ms)
	for i, err := range errs {
		if (i == 3) != sluice.IsPermanent(err) || i != 3 && err != nil {
			t.Errorf("message %d: %.300v", i, err)
		}
	}
	s.receive(t, name, 4)
}

// The limit is higher than the server's. Messages that are too large are found and
// parked, the others arrive.
func TestServerRefusesWhatIsTooLarge(t *testing.T) {
	s := connect(t)
	name := s.create(t, "", nil)
	q := s.open(t, name, sqs.Options{MaxBytes: 8 << 20})
	errs := q.SendAll(t.Context(), []sluice.Message{
		{Body: "a"},
		{Body: strings.Repeat("b", 600<<10)},
		{Body: strings.Repeat("c", 1<<20+1)},
		{Body: strings.Repeat("d", 600<<10)},
	})
	for i, err := range errs {
		if (i == 2) != sluice.IsPermanent(err) || i != 2 && err != nil {
			t.Errorf("message %d: %.300v", i, err)
		}
	}
	s.receive(t, name, 3)
}

func TestServerHasNoSuchQueue(t *testing.T) {
	s := connect(t)
	name := localtest.Name("missing")
	for _, queue := range []string{name, *s.cfg.BaseEndpoint + "/000000000000/" + name} {
		q := s.open(t, queue, sqs.Options{})
		for call, err := range map[string]error{"Check": q.Check(t.Context()), "Send": q.Send(t.Context(), sluice.Message{Body: "x"})} {
			if err == nil || sluice.IsPermanent(err) || !strings.Contains(err.Error(), "there is no such queue") ||
				!strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), *s.cfg.BaseEndpoint) {
				t.Errorf("%s of %s: %v", call, queue, err)
			}
		}
	}
}
