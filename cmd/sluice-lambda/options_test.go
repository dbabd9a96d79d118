package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/function"
	"github.com/sluicehq/sluice/internal/letterkeys"
	"github.com/sluicehq/sluice/internal/recordtest"
)

// The function gets its settings of the file.
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
		m, o, err := function.New(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if o.Concurrency != want.concurrency || o.StuckAfter != want.stuck || o.MaxAge != want.maxAge ||
			(o.DeadLetter != nil) != want.letters || o.Order != want.order || o.Logger == nil || len(m.Routes()) != 1 {
			t.Errorf("%+v\n%s", o, text)
		}
	}
}

// No record and no dead letter goes to AWS where others can read it.
func TestNoPlainHTTPToAWS(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(path, []byte("source: {tables: [orders]}\nroutes: [{name: x, on: 'a#*', log: {}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLUICE_CONFIG", path)
	t.Setenv("SLUICE_ENDPOINT_SQS", "http://sqs.eu-west-1.amazonaws.com")
	if _, _, err := function.New(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "SLUICE_ENDPOINT_SQS: it is plain http to AWS") {
		t.Error(err)
	}
}

// A letter is no longer than a queue takes once it is escaped and signed, either.
func TestSignedLetterFits(t *testing.T) {
	q := newQueues(t)
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	t.Setenv("SLUICE_CONFIG", path)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	t.Setenv("SLUICE_ENDPOINT_SQS", q.URL)
	const key = "0123456789abcdef0123456789abcdef"
	t.Setenv(access.LetterKeyEnv, key)
	text := "source: {tables: [orders]}\nroutes: [{name: x, on: 'a#*', log: {}}]\ndeadLetter: {queue: " + q.URL + "/1/dead}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, o, err := function.New(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := letterkeys.Find(func(name string) string { return map[string]string{access.LetterKeyEnv: key}[name] }, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{strings.Repeat("\uFFFE", 60_000), noise(195_500), noise(262_000)} {
		letter := parked(t, q, o.DeadLetter, text)
		if err := keys.Verify([]byte(letter)); err != nil || len(letter) > 256<<10 {
			t.Errorf("%d bytes: %v", len(letter), err)
		}
	}
}

// noise is text that hardly gets shorter when it is compressed.
func noise(n int) string {
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, n)
	for i := range data {
		data[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[random.IntN(64)]
	}
	return string(data)
}

// parked is the letter of an item with a text.
func parked(t *testing.T, q *queues, park flow.DeadLetter, text string) string {
	t.Helper()
	page, err := sluice.DecodeEvent(recordtest.Event(recordtest.New(order(`{"S":"`+text+`"}`, "c"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := park.Park(t.Context(), &page.Records[0], sluice.Failure{}); err != nil {
		t.Fatal(err)
	}
	dead := q.take("dead")
	if len(dead) != 1 {
		t.Fatalf("%d letters", len(dead))
	}
	e, err := deadletter.Parse([]byte(dead[0]))
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := e.Record().New.Lookup("n"); e.Ref == nil && v.Str() != text {
		t.Errorf("%d bytes of %d came back", len(v.Str()), len(text))
	}
	return dead[0]
}
