//go:build integration

package daemon

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/letterkeys"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/runtimeapi"
	"github.com/sluicehq/sluice/router"
)

func init() {
	// lossy has two routes. Only the first needs the old image.
	children["lossy"] = App{Name: "lossy", Routes: func(context.Context, Setup) (sluice.Matcher, error) {
		r := router.New()
		for _, name := range []string{"alert", "search"} {
			images := router.NeedsOld()
			if name == "alert" {
				images = router.Name(name)
			}
			r.Handle("*#REMOVE", func(_ context.Context, rec *sluice.Record) error {
				id, _ := rec.Keys.Lookup("id")
				_, err := fmt.Fprintln(os.Stderr, name, id.Str())
				return err
			}, router.Name(name), images)
		}
		return r, nil
	}}
}

// invoked returns the answer of a child function to records. Each argument is the image
// of a record, or invalid text.
func invoked(t *testing.T, child string, env []string, created time.Time, images ...string) (answer, log string) {
	t.Helper()
	var records []string
	for i, image := range images {
		records = append(records, streamed(i, "INSERT", created, fmt.Sprintf(`"Keys":%s,"NewImage":%[1]s`, image)))
	}
	return invokedWith(t, child, env, records...)
}

// streamed is a record of a stream that sends both images.
func streamed(n int, event string, created time.Time, images string) string {
	return fmt.Sprintf(`{"eventID":"e%d","eventName":%q,"eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:us-east-1:000000000000:table/shop/stream/2021-12-06T00:00:00.000","dynamodb":{"ApproximateCreationDateTime":%d,%s,"SequenceNumber":"10000000000000000000%[1]d","StreamViewType":"NEW_AND_OLD_IMAGES"}}`,
		n, event, created.Unix(), images)
}

// invokedWith is invoked with whole records.
func invokedWith(t *testing.T, child string, env []string, records ...string) (answer, log string) {
	t.Helper()
	var out bytes.Buffer
	fn, err := runtimeapi.Start(t.Context(), runtimeapi.Command{
		Path: os.Args[0], Env: append([]string{childEnv + "=" + child, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local"}, env...),
		Stdout: &out, Stderr: &out,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	a, err := fn.Invoke(t.Context(), []byte(`{"Records":[`+strings.Join(records, ",")+`]}`), localtest.Patience)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if _, err := fn.Stop(); err != nil {
		t.Error(err)
	}
	return string(a.Payload), out.String()
}

// A deletion that came without its image, as some of DynamoDB Local do, fails for the
// route that needs the image. The other route handles it, and the batch goes on.
func TestFunctionOfALostImage(t *testing.T) {
	q := newQueue(t)
	lost := streamed(0, "REMOVE", time.Now(), `"Keys":{"id":{"S":"lost"}}`)
	whole := streamed(1, "REMOVE", time.Now(), `"Keys":{"id":{"S":"whole"}},"OldImage":{"id":{"S":"whole"}}`)
	if got, log := invokedWith(t, "lossy", q.env, lost, whole); got != `{"batchItemFailures":[{"itemIdentifier":"100000000000000000000"}]}` || !strings.Contains(log, "alert lost") {
		t.Errorf("without a queue: %s\n%s", got, log)
	}
	got, log := invokedWith(t, "lossy", append(slices.Clone(q.env), "SLUICE_DEAD_LETTER_QUEUE="+q.name), lost, whole)
	if got != `{"batchItemFailures":[]}` {
		t.Errorf("with a queue: %s", got)
	}
	for _, want := range []string{"alert lost", "alert whole", "search whole"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q:\n%s", want, log)
		}
	}
	localtest.Await(t, "the letter", func() string {
		out, err := q.client.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: q.url, WaitTimeSeconds: 1})
		switch {
		case err != nil:
			t.Fatal(err)
		case len(out.Messages) == 0:
			return "none"
		}
		e, err := deadletter.Parse([]byte(*out.Messages[0].Body))
		if err != nil || e.Route != "search" || !strings.Contains(e.Last.Error, "needs the old image: the REMOVE record does not have it although the stream should send one") {
			t.Errorf("%+v, %v", e, err)
		}
		return ""
	})
}

func init() {
	// mended fails while a file is missing.
	children["mended"] = App{Name: "mended", Tables: []string{"shop"}, Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
		r := router.New()
		r.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
			if _, err := os.Stat(s.Env("MENDED_FILE")); err != nil {
				return sluice.Permanent(fmt.Errorf("not yet: %w", err))
			}
			id, _ := rec.Keys.Lookup("id")
			_, err := fmt.Println("handled", id.Str())
			return err
		}, router.Name("work"), router.Redrive())
		return r, nil
	}}
}

// The program redrives the letters of its function: signed letters only, and none of
// another program's table. Letters that fail again stay.
func TestRedriveOfAFunctionsLetters(t *testing.T) {
	q := newQueue(t)
	file := filepath.Join(t.TempDir(), "mended")
	env := append(slices.Clone(q.env), "SLUICE_DEAD_LETTER_QUEUE="+q.name, "MENDED_FILE="+file)
	signed := append(slices.Clone(env), access.LetterKeyEnv+"=0123456789abcdef0123456789abcdef")
	if got, log := invoked(t, "mended", signed, time.Now(), `{"id":{"S":"a"}}`, `{"id":{"S":"b"}}`); got != `{"batchItemFailures":[]}` {
		t.Fatalf("%s\n%s", got, log)
	}
	other := strings.ReplaceAll(streamed(7, "INSERT", time.Now(), `"Keys":{"id":{"S":"c"}},"NewImage":{"id":{"S":"c"}}`), "table/shop/", "table/others/")
	if got, log := invokedWith(t, "mended", signed, other); got != `{"batchItemFailures":[]}` {
		t.Fatalf("%s\n%s", got, log)
	}
	redrive := func(want int, env []string, args ...string) string {
		t.Helper()
		c := startChild(t, "mended", env, append([]string{"dlq", "redrive"}, args...)...)
		if code := c.exit(); code != want {
			t.Errorf("%q: exit %d, want %d:\n%s", args, code, want, c.output())
		}
		return c.output()
	}
	says := func(out, want string, n int) {
		t.Helper()
		if strings.Count(out, want) != n {
			t.Errorf("not %d × %q:\n%s", n, want, out)
		}
	}
	says(redrive(1, signed, "--all", "--dry-run"), "would run on work", 2)
	failed := redrive(1, signed, "--all")
	says(failed, ": failed on work: \"not yet", 2)
	id, _, _ := strings.Cut(failed, ":")
	both := redrive(1, signed, id, "ffffffff")
	says(both, id+": ", 1)
	says(both, "1 failed or were refused", 1)
	says(both, "ffffffff", 1)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	says(redrive(1, env, "--all"), "not signed", 3)
	out := redrive(1, signed, "--all", "--queue", *q.url)
	says(out, "handled a", 1)
	says(out, "handled b", 1)
	says(out, "handled c", 0)
	says(out, "table others is none of this program (shop)", 1)
	says(out, "2 done, 1 failed or refused", 1)
	says(redrive(0, signed, "--route", "other"), "0 done", 1)
	q.holds("1")
	redrive(2, signed)
	redrive(2, signed, "--queue", "", "--all")
}

// A program's function parks permanent failures and undecodable records in its queue,
// signed, and continues. Without a queue the batch stops there.
func TestFunctionParks(t *testing.T) {
	q := newQueue(t)
	const key = "0123456789abcdef0123456789abcdef"
	const undecodable, poison, good = `{"id":{"S":7}}`, `{"id":{"S":"poison"}}`, `{"id":{"S":"good"}}`
	if got, log := invoked(t, "poisoned", q.env, time.Now(), good, undecodable, poison, good); got != `{"batchItemFailures":[{"itemIdentifier":"100000000000000000001"}]}` {
		t.Errorf("without a queue: %s\n%s", got, log)
	}
	env := append(slices.Clone(q.env), "SLUICE_DEAD_LETTER_QUEUE="+q.name, access.LetterKeyEnv+"="+key)
	if got, log := invoked(t, "poisoned", env, time.Now(), good, undecodable, poison, good); got != `{"batchItemFailures":[]}` {
		t.Errorf("with a queue: %s\n%s", got, log)
	}
	env = append(env, "SLUICE_DEAD_LETTER_MAX_AGE=15m")
	if got, log := invoked(t, "broken", env, time.Now(), good); got != `{"batchItemFailures":[{"itemIdentifier":"100000000000000000000"}]}` {
		t.Errorf("a new record: %s\n%s", got, log)
	}
	if got, log := invoked(t, "broken", env, time.Now().Add(-16*time.Minute), good); got != `{"batchItemFailures":[]}` {
		t.Errorf("an old record: %s\n%s", got, log)
	}

	keys, err := letterkeys.Find(func(name string) string { return map[string]string{access.LetterKeyEnv: key}[name] }, "")
	if err != nil {
		t.Fatal(err)
	}
	var letters []string
	localtest.Await(t, "three letters", func() string {
		out, err := q.client.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: q.url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			if err := keys.Verify([]byte(*m.Body)); err != nil {
				t.Error(err)
			}
			letters = append(letters, *m.Body)
		}
		if len(letters) < 3 {
			return fmt.Sprint(len(letters))
		}
		return ""
	})
	all := strings.Join(letters, "\n")
	for _, want := range []string{"never", "the sink is down"} {
		if len(letters) != 3 || !strings.Contains(all, want) {
			t.Errorf("%d letters without %q:\n%s", len(letters), want, all)
		}
	}
}
