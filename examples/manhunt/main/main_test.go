//go:build integration

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/examples/manhunt/reflex"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/run"
)

// TestDaemon runs the program as a daemon without its consumers: writes to the table
// become messages in the queue.
func TestDaemon(t *testing.T) {
	w := newWorld(t)
	stop := w.daemon()
	w.put(w.name, manhunt.Fixtures()...)
	var keys []string
	localtest.Await(t, "two messages", func() string {
		out, err := w.queues.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: aws.String(w.env["MANHUNT_QUEUE"]), MaxNumberOfMessages: 10, WaitTimeSeconds: 20})
		if err != nil {
			return err.Error()
		}
		for _, m := range out.Messages {
			_, key, _ := strings.Cut(*m.Body, `"dedupeKey":`)
			keys = append(keys, key)
		}
		if len(keys) < 2 {
			return fmt.Sprintf("received %q", keys)
		}
		return ""
	})
	slices.Sort(keys)
	if got := strings.Join(keys, " "); got != `"a271244#0"} "a271244#1"}` {
		t.Errorf("received %s", got)
	}
	if log := stop(); !strings.Contains(log, "no queue is consumed") {
		t.Errorf("log:\n%s", log)
	}
}

// TestDaemonConsumes runs the program on its queues, too, from a search that is opened
// by a command to its answer, and Reflex beside it.
func TestDaemonConsumes(t *testing.T) {
	w := newWorld(t)
	w.env["SLUICE_QUEUES"] = w.env["MANHUNT_QUEUE"] + "," + w.env["MANHUNT_WATCH_QUEUE"]
	stop := w.daemon()
	w.put(w.name, w.ladder()...)
	id := strings.TrimSpace(w.command("open", "db3280c", "89fa8f8", "--metadata", `{"incident":"I-7","why":"\"fire\"","stage":3}`))
	w.await("the attempts", func() string { return w.attempts(id) }, w.called())
	if want := id + `#1 {"to":"Zavier Curtis","text":"I-7: \"fire\"","stage":3}`; w.posted() != want {
		t.Errorf("the webhook got %s, want %s", w.posted(), want)
	}
	// The attempt still shows the called method after an edit.
	w.put(w.name, w.ladder()[2].With(item.String("destination", "https://elsewhere.example.com")))
	if got := w.attempts(id); got != w.called() {
		t.Errorf("after an edit: %s", got)
	}
	before := now()
	if got := w.command("answer", id, "1", "on my way", "--by", "bob"); got != "noted\n" {
		t.Error(got)
	}
	w.await("the answer", func() string { return w.search(id).Status }, manhunt.Successful)
	s := w.search(id)
	if at, err := time.Parse(time.RFC3339, s.Resolved); err != nil || at.Before(before) || s.ResolvedBy != "bob" || s.Resolution != "on my way" {
		t.Errorf("%+v", s)
	}

	// The search of an incident ends with it, and malformed ones say so themselves.
	w.put(w.name+"-reflex", incident(), incident("I-1", "I-2", `"stage":{"N":"1"}`, `"stage":{"N":"9"}`))
	w.put(w.name, manhunt.Fixtures()[fxSearch].With(item.String("GSI1SK", "today")))
	first := reflex.SearchID("I-1", 1)
	w.await("the first attempt", func() string { got, _, _ := strings.Cut(w.attempts(first), " "); return got }, "failed")
	if err := w.store.Delete(t.Context(), w.name+"-reflex", incident().Only("PK", "SK")); err != nil {
		t.Fatal(err)
	}
	w.await("the end of the incident's search", func() string { s := w.search(first); return s.Status + " " + s.Resolution + " " + s.ResolvedBy }, "canceled incident removed reflex")
	w.await("the malformed incident", func() string {
		it, err := w.store.Get(t.Context(), w.name+"-reflex", incident("I-1", "I-2").Only("PK", "SK"))
		if err != nil {
			return err.Error()
		}
		status, _ := it.Lookup("status")
		reason, _ := it.Lookup("reason")
		return status.Str() + ": " + reason.Str()
	}, "failed: it is at stage 9 of 1")
	w.await("the malformed search", func() string { s := w.search("a271244"); return s.Status + " " + s.Resolution },
		"failed bad_search: GSI1SK, when it started, is no time in RFC 3339, such as 2019-12-30T19:32:14Z")
	log := stop()
	for _, secret := range []string{id, "89fa8f8", "example.com", "I-7", "I-1", "fire", "Zavier"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %q:\n%s", secret, log)
		}
	}
}

// Carriers are fake: the outbox has the text for the contact.
func TestOutbox(t *testing.T) {
	w := newWorld(t)
	w.env["SLUICE_QUEUES"] = w.env["MANHUNT_QUEUE"]
	w.daemon()
	w.put(w.name, w.ladder()[0], manhunt.Fixtures()[fxCall].With(item.Number("waitSeconds", "0")), manhunt.Fixtures()[fxSearch])
	w.await("the call", func() string { data, _ := os.ReadFile(w.outbox); return string(data) },
		`{"type":"call","destination":"+15550100","text":"Zavier Curtis: I-1","dedupeKey":"a271244#0"}`+"\n")
}

func TestQueueIsRequired(t *testing.T) {
	_, err := routes(run.Setup{
		Env: func(string) string { return "" },
		AWS: func(string) aws.Config { return aws.Config{} },
	}, time.Now)
	if err == nil || !strings.Contains(err.Error(), "MANHUNT_QUEUE is not set; want") {
		t.Error(err)
	}
}
