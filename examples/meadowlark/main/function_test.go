//go:build integration

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/meadowlark"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/runtimeapi"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// function is the program as Lambda runs it.
type function struct {
	*world
	*runtimeapi.Function
	log bytes.Buffer
}

// runMain is the variable that makes the test binary the program: the function
// needs no build of its own.
const runMain = "MEADOWLARK_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func (w *world) start(more ...string) *function {
	w.t.Helper()
	binary, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	env := append([]string{runMain + "=1", "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local"}, more...)
	for name, value := range w.env {
		env = append(env, name+"="+value)
	}
	f := &function{world: w}
	if f.Function, err = runtimeapi.Start(w.t.Context(), runtimeapi.Command{Path: binary, Stdout: &f.log, Stderr: &f.log, Env: env}); err != nil {
		w.t.Fatalf("%v\n%s", err, f.log.String())
	}
	return f
}

// record is one of an event: a deletion, or an item that was written.
type record struct {
	item    item.Item
	deleted bool
}

// expect invokes the function with records and looks at its answer: failed is the
// place of the record from which the batch is to come again, or -1.
func (f *function) expect(failed int, created time.Time, records ...record) {
	f.t.Helper()
	var event struct{ Records []json.RawMessage }
	number := func(i int) string { return fmt.Sprintf("1000000000000000000%02d", i) }
	for i, r := range records {
		name, image := "INSERT", "NewImage"
		if r.deleted {
			name, image = "REMOVE", "OldImage"
		}
		event.Records = append(event.Records, json.RawMessage(fmt.Sprintf(`{"eventID":"e%d","eventName":%q,"eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:us-east-1:000000000000:table/%s/stream/2021-12-06T00:00:00.000","dynamodb":{"ApproximateCreationDateTime":%d,"Keys":%s,%q:%s,"SequenceNumber":%q,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`,
			i, name, f.table, created.Unix(), r.item.Only("pk", "sk").Raw(), image, r.item.Raw(), number(i))))
	}
	payload, err := json.Marshal(event)
	if err != nil {
		f.t.Fatal(err)
	}
	want := `{"batchItemFailures":[]}`
	if failed >= 0 {
		want = `{"batchItemFailures":[{"itemIdentifier":"` + number(failed) + `"}]}`
	}
	answer, err := f.Invoke(f.t.Context(), payload, localtest.Patience)
	if err != nil || string(answer.Payload) != want {
		f.t.Fatalf("answer %s %s, %v; want %s\n%s", answer.Payload, answer.Message, err, want, f.log.String())
	}
}

func (f *function) stop() {
	f.t.Helper()
	if _, err := f.Stop(); err != nil {
		f.t.Error(err)
	}
}

// The same program is a function. What cannot be a document is answered as failed,
// alone; while OpenSearch is down, who watches over the data is told of what
// dangles, and with a queue for dead letters the batches behind go on, too.
func TestFunction(t *testing.T) {
	w := newWorld(t)
	f := w.start()
	fx := meadowlark.Fixtures()
	all := []record{}
	for _, it := range fx {
		all = append(all, record{item: it})
		if err := w.store.Write(t.Context(), dynamo.Put(w.table, it)); err != nil {
			t.Fatal(err)
		}
	}
	broken := record{item: fx[course].Only("pk", "sk", "info")} // it has no rev
	f.expect(len(all), time.Now(), append(all, broken)...)
	for i, it := range fx {
		if writer.Kind(it) == writer.Entity {
			w.awaitCopy(i, true)
		}
	}

	if err := w.store.Delete(t.Context(), w.table, fx[school].Only("pk", "sk")); err != nil {
		t.Fatal(err)
	}
	batch := []record{{item: fx[course]}, {item: fx[school], deleted: true}}
	back := w.proxy.Fail(streamtest.ProxyFault{Drop: true})
	f.expect(0, time.Now(), batch...)
	w.alert()
	back()
	f.expect(-1, time.Now(), batch...)
	w.alert()
	w.awaitCopy(school, false)
	f.stop()

	letters := w.queue("letters")
	f = w.start("SLUICE_DEAD_LETTER_QUEUE="+letters, "SLUICE_DEAD_LETTER_MAX_AGE=15m")
	f.expect(-1, time.Now(), broken)
	w.proxy.Fail(streamtest.ProxyFault{Drop: true})
	f.expect(0, time.Now().Add(-14*time.Minute), batch...)
	w.alert()
	f.expect(-1, time.Now().Add(-16*time.Minute), batch...)
	w.alert()
	f.stop()
	got := 0
	localtest.Await(t, "three dead letters", func() string {
		out, err := w.queues.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: aws.String(letters), MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got += len(out.Messages); got < 3 {
			return fmt.Sprint(got)
		}
		return ""
	})
}
