//go:build integration

package run

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/runtimeapi"
)

// invoked is what a function that is one of children answers to records, each the
// image of one, or text that is none.
func invoked(t *testing.T, child string, env []string, created time.Time, images ...string) (answer, log string) {
	t.Helper()
	var out bytes.Buffer
	fn, err := runtimeapi.Start(t.Context(), runtimeapi.Command{
		Path: os.Args[0], Env: append([]string{childEnv + "=" + child, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local"}, env...),
		Stdout: &out, Stderr: &out,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	var records []string
	for i, image := range images {
		records = append(records, fmt.Sprintf(`{"eventID":"e%d","eventName":"INSERT","eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:us-east-1:000000000000:table/shop/stream/2021-12-06T00:00:00.000","dynamodb":{"ApproximateCreationDateTime":%d,"Keys":%s,"NewImage":%[3]s,"SequenceNumber":"10000000000000000000%[1]d","StreamViewType":"NEW_AND_OLD_IMAGES"}}`,
			i, created.Unix(), image))
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

// A function of a program parks in its queue, signed, what fails for good and what
// cannot be decoded, and goes on. Without a queue the batch stops there.
func TestFunctionParks(t *testing.T) {
	q := newQueue(t)
	const key = "0123456789abcdef0123456789abcdef"
	const undecodable, poison, good = `{"id":{"S":7}}`, `{"id":{"S":"poison"}}`, `{"id":{"S":"good"}}`
	if got, log := invoked(t, "poisoned", q.env, time.Now(), good, undecodable, poison, good); got != `{"batchItemFailures":[{"itemIdentifier":"100000000000000000001"}]}` {
		t.Errorf("without a queue: %s\n%s", got, log)
	}
	env := append(slices.Clone(q.env), "SLUICE_DEAD_LETTER_QUEUE="+q.name, deadletter.KeyEnv+"="+key)
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

	keys, err := deadletter.ParseKeys(key, "the test")
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
