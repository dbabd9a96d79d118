package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/function"
	"github.com/sluicehq/sluice/internal/recordtest"
)

// What the file says of a function reaches it.
func TestFileReachesFunction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	t.Setenv("SLUICE_CONFIG", path)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	const head = "source: {tables: [orders]}\nroutes: [{name: x, on: 'a#*', log: {}}]\n"
	for text, want := range map[string]struct {
		concurrency   int
		stuck, maxAge time.Duration
		letters       bool
		order         flow.Order
	}{
		head: {order: flow.ByItem},
		head + "limits: {concurrency: 3, order: shard, stuckAfter: 5s}\ndeadLetter: {park: record, queue: dead, maxAge: 2h}\n": {
			concurrency: 3, stuck: 5 * time.Second, maxAge: 2 * time.Hour, letters: true, order: flow.ByShard},
		head + "limits: {order: item}\ndeadLetter: {park: item}\n": {order: flow.ByItem}, // nothing is parked
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m, o, err := function.New(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if o.Concurrency != want.concurrency || o.StuckAfter != want.stuck || o.MaxAge != want.maxAge ||
			(o.DeadLetter != nil) != want.letters || o.Order != want.order || o.Logger == nil || len(m.Routes()) != 1 {
			t.Errorf("%+v\n%s", o, text)
		}
	}
}

// A letter is no longer than a queue takes once it is escaped, either.
func TestEscapedLetterFits(t *testing.T) {
	q := newQueues(t)
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	t.Setenv("SLUICE_CONFIG", path)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	t.Setenv("SLUICE_ENDPOINT_SQS", q.URL)
	text := "source: {tables: [orders]}\nroutes: [{name: x, on: 'a#*', log: {}}]\ndeadLetter: {queue: " + q.URL + "/1/dead}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, o, err := function.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Repeat("\uFFFE", 60_000)
	page, err := sluice.DecodeEvent(recordtest.Event(recordtest.New(order(`{"S":"`+text+`"}`, "c"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.DeadLetter.Park(t.Context(), &page.Records[0], sluice.Failure{}); err != nil {
		t.Fatal(err)
	}
	dead := q.take("dead")
	if len(dead) != 1 || len(dead[0]) > 256<<10 {
		t.Fatalf("%d letters, the first of %d bytes", len(dead), len(dead[0]))
	}
	e, err := deadletter.Parse([]byte(dead[0]))
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := e.Record().New.Lookup("n"); v.Str() != text {
		t.Errorf("%d bytes of %d came back", len(v.Str()), len(text))
	}
}
