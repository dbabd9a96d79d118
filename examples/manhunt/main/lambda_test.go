//go:build integration

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/examples/manhunt/reflex"
	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/runtimeapi"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// function is the program as Lambda runs it.
type function struct {
	*world
	fn  *runtimeapi.Function
	log output
}

// output collects the function's output, while the test reads it.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

func newFunction(t *testing.T) *function {
	w := &function{world: newWorld(t)}
	binary := filepath.Join(t.TempDir(), "bootstrap")
	if err := localstack.Build(t.Context(), binary, "-tags", "lambda.norpc", "."); err != nil {
		t.Fatal(err)
	}
	env := []string{"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local"}
	for name, value := range w.env {
		env = append(env, name+"="+value)
	}
	var err error
	if w.fn, err = runtimeapi.Start(t.Context(), runtimeapi.Command{Path: binary, Stdout: &w.log, Stderr: &w.log, Env: env}); err != nil {
		t.Fatalf("%v\n%s", err, w.log.String())
	}
	return w
}

// invoke hands over records, twice, and returns the last answer.
func (w *function) invoke(recs ...sluice.Record) string {
	w.t.Helper()
	var event struct{ Records []json.RawMessage }
	for _, rec := range recs {
		event.Records = append(event.Records, rec.Raw())
	}
	payload, err := json.Marshal(event)
	if err != nil {
		w.t.Fatal(err)
	}
	var last string
	for range 2 {
		answer, err := w.fn.Invoke(w.t.Context(), payload, localtest.Patience)
		if err != nil || answer.Message != "" {
			w.t.Fatalf("%s, %v\n%s", answer.Message, err, w.log.String())
		}
		last = string(answer.Payload)
	}
	return last
}

// done is the answer of a batch that is settled.
const done = `{"batchItemFailures":[]}`

func (w *function) settled(recs ...sluice.Record) {
	w.t.Helper()
	if got := w.invoke(recs...); got != done {
		w.t.Fatalf("answer %s\n%s", got, w.log.String())
	}
}

// message takes a message from the queue of attempts.
func (w *function) message(key string) sluice.Record {
	w.t.Helper()
	url := aws.String(w.env["MANHUNT_QUEUE"])
	var rec sluice.Record
	localtest.Await(w.t, "the message of "+key, func() string {
		out, err := w.queues.ReceiveMessage(w.t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: url, WaitTimeSeconds: 1})
		if err != nil || len(out.Messages) == 0 {
			return fmt.Sprint("none; ", err)
		}
		m := out.Messages[0]
		if _, err := w.queues.DeleteMessage(w.t.Context(), &awssqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle}); err != nil {
			return err.Error()
		}
		if !strings.Contains(*m.Body, `"dedupeKey":"`+key+`"`) { // it was sent twice
			return *m.Body
		}
		in := sluice.Message{ID: *m.MessageId, Body: *m.Body, Received: 1, Sent: time.Now()}
		rec = *in.Record("arn:aws:sqs:us-east-1:000000000000:attempts")
		return ""
	})
	return rec
}

// attemptRecord is the record of an attempt that was made.
func (w *function) attemptRecord(id string, step int64, change ...item.Attribute) sluice.Record {
	w.t.Helper()
	key := item.Of(item.String("PK", id), item.String("SK", manhunt.AttemptID(id, 0, step)))
	it, err := w.store.Get(w.t.Context(), w.name, key)
	if err != nil || !it.Exists() {
		w.t.Fatal(it, err)
	}
	if len(change) > 0 {
		return streamtest.Modify(w.name, it, it.With(change...))
	}
	return streamtest.Modify(w.name, it.Without("attemptedDatetime", "outcome"), it)
}

// The same program is the function for the triggers of tables and queues.
func TestFunction(t *testing.T) {
	w := newFunction(t)
	w.put(w.name, w.ladder()...)
	id := strings.TrimSpace(w.command("open", "db3280c", "89fa8f8", "--metadata", `{"incident":"I-7","why":"\"fire\"","stage":3}`))
	opened, err := w.store.Get(t.Context(), w.name, manhunt.SearchKey(id))
	if err != nil {
		t.Fatal(err)
	}
	w.settled(streamtest.Insert(w.name, opened))
	w.settled(w.message(id + "#0"))
	w.settled(w.attemptRecord(id, 0))
	w.settled(w.message(id + "#1"))
	if got := w.attempts(id); got != w.called() {
		t.Errorf("attempts\n%s\nwant\n%s", got, w.called())
	}
	if want := id + `#1 {"to":"Zavier Curtis","text":"I-7: \"fire\"","stage":3}`; w.posted() != want {
		t.Errorf("the webhook got %s, want %s", w.posted(), want)
	}
	w.settled(w.attemptRecord(id, 1, item.String("response", "on my way"), item.String("respondedBy", "bob"), item.String("respondedDatetime", "2019-12-30T19:40:00Z")))
	if s := w.search(id); s.Status != manhunt.Successful || s.ResolvedBy != "bob" || s.Resolved != "2019-12-30T19:40:00Z" || s.Resolution != "on my way" {
		t.Errorf("%+v", s)
	}

	// Reflex.
	w.put(w.name+"-reflex", incident())
	w.settled(streamtest.Insert(w.name+"-reflex", incident()))
	first := reflex.SearchID("I-1", 1)
	begun, err := w.store.Get(t.Context(), w.name, manhunt.SearchKey(first))
	if err != nil {
		t.Fatal(err)
	}
	w.settled(streamtest.Insert(w.name, begun))
	step := w.message(first + "#0")
	if err := w.store.Delete(t.Context(), w.name+"-reflex", incident().Only("PK", "SK")); err != nil {
		t.Fatal(err)
	}
	w.settled(streamtest.Remove(w.name+"-reflex", incident(), streamtest.WithTime(time.Date(2019, 12, 30, 20, 5, 0, 0, time.UTC))))
	if s := w.search(first); s.Status != manhunt.Canceled || s.Resolution != "incident removed" || s.Resolved != "2019-12-30T20:05:00Z" {
		t.Errorf("%+v", s)
	}
	// Its step is due, and the record of its stage comes once more: nobody is called.
	w.settled(step)
	w.settled(streamtest.Insert(w.name+"-reflex", incident()))
	if s, attempts := w.search(first), w.attempts(first); s.Status != manhunt.Canceled || attempts != "" {
		t.Errorf("%+v, attempts %s", s, attempts)
	}

	// An answer acknowledges the incident.
	answered := incident("I-1", "I-3")
	w.put(w.name+"-reflex", answered)
	w.settled(streamtest.Insert(w.name+"-reflex", answered))
	third := reflex.SearchID("I-3", 1)
	if begun, err = w.store.Get(t.Context(), w.name, manhunt.SearchKey(third)); err != nil {
		t.Fatal(err)
	}
	w.settled(streamtest.Insert(w.name, begun))
	w.settled(w.message(third + "#0"))
	w.settled(w.attemptRecord(third, 0, item.String("response", "yes"), item.String("respondedBy", "bob"), item.String("respondedDatetime", "2019-12-30T19:40:00Z")))
	over, err := w.store.Get(t.Context(), w.name, manhunt.SearchKey(third))
	if err != nil {
		t.Fatal(err)
	}
	w.settled(streamtest.Modify(w.name, begun, over))
	w.settled(w.message(third + "#successful"))
	got, err := w.store.Get(t.Context(), w.name+"-reflex", answered.Only("PK", "SK"))
	want := answered.With(item.String("status", "acknowledged"), item.String("acknowledgedBy", "bob"), item.String("acknowledgedDatetime", "2019-12-30T19:40:00Z"))
	if err != nil || !got.Equal(want) {
		t.Errorf("%v, %s", err, got.Raw())
	}

	// A malformed item gets a note. The first record fails. When the record comes
	// again, the batch continues.
	bad := incident("I-1", "I-2", `"stage":{"N":"1"}`, `"stage":{"N":"9"}`)
	w.put(w.name+"-reflex", bad)
	w.settled(streamtest.Insert(w.name+"-reflex", bad))
	localtest.Await(t, "the failure is in the log", func() string { // which comes by a pipe of its own
		if log := w.log.String(); !strings.Contains(log, "it is at stage 9 of 1") {
			return log
		}
		return ""
	})
	it, err := w.store.Get(t.Context(), w.name+"-reflex", bad.Only("PK", "SK"))
	status, _ := it.Lookup("status")
	if reason, _ := it.Lookup("reason"); err != nil || status.Str() != "failed" || reason.Str() != "it is at stage 9 of 1" {
		t.Errorf("%v, %s", err, it.Raw())
	}
	search := manhunt.Fixtures()[fxSearch].Without("contactId")
	w.put(w.name, search)
	w.invoke(streamtest.Insert(w.name, search)) // the second time it is over
	if s := w.search("a271244"); s.Status != manhunt.Failed || s.Resolution != "bad_search: contactId is missing, or no text" {
		t.Errorf("%+v", s)
	}
	if _, err := w.fn.Stop(); err != nil {
		t.Error(err)
	}
	for _, secret := range []string{id, "89fa8f8", "I-7", "I-1", "I-3", "fire", "Zavier"} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log has %q:\n%s", secret, w.log.String())
		}
	}
}
