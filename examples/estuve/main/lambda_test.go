//go:build integration

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/estuve"
	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/runtimeapi"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// One program is the function of the streams, which counts, and the function of the
// queue. The latter deletes the points of a deleted map, and sends the sweep. A bad
// message alone is answered as failed.
func TestWorkerAsAFunction(t *testing.T) {
	w := newWorld(t)
	binary := filepath.Join(t.TempDir(), "bootstrap")
	if err := localstack.Build(t.Context(), binary, "-tags", "lambda.norpc", "."); err != nil {
		t.Fatal(err)
	}
	q := localtest.SQS(t)
	queues := awssqs.NewFromConfig(q)
	name := localtest.Name("estuve")
	made, err := queues.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		w.put(estuve.Fixture{Table: w.tables.Points, Item: item.Of(item.String("map_id", "m-1"), item.String("point_id", fmt.Sprint(i)), item.String("user_id", "u-1"))})
	}
	w.put(estuve.Fixture{Table: w.tables.Points, Item: item.Of(item.String("map_id", "m-2"), item.String("point_id", "kept"), item.String("user_id", "u-1"))})

	var log bytes.Buffer
	fn, err := runtimeapi.Start(t.Context(), runtimeapi.Command{Path: binary, Stdout: &log, Stderr: &log, Env: []string{
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local",
		"SLUICE_ENDPOINT_DYNAMODB=" + w.env["SLUICE_ENDPOINT_DYNAMODB"], "SLUICE_ENDPOINT_SQS=" + *q.BaseEndpoint,
		"ESTUVE_PREFIX=" + w.prefix, "ESTUVE_QUEUE=" + *made.QueueUrl,
	}})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	fx := estuve.Fixtures(w.tables)
	w.put(estuve.Fixture{Table: w.tables.Users, Item: item.Of(item.String("user_id", "u-1"))}, fx[1])
	inserted := streamtest.Insert(w.tables.Maps, fx[1].Item.Without("num_points"), streamtest.WithKeys("user_id", "map_id"))
	records := []byte(`{"Records":[` + string(inserted.Raw()) + `]}`)
	for range 2 { // it counts once
		if answer, err := fn.Invoke(t.Context(), records, localtest.Patience); err != nil || string(answer.Payload) != `{"batchItemFailures":[]}` {
			t.Fatalf("answer %s %s, %v\n%s", answer.Payload, answer.Message, err, log.String())
		}
	}
	if got := w.user(); got != (estuve.User{ID: "u-1", Maps: 1}) {
		t.Errorf("%+v", got)
	}
	if err := w.store.Delete(t.Context(), w.tables.Maps, fx[1].Item.Only("user_id", "map_id")); err != nil {
		t.Fatal(err)
	}

	body := `{"kind":"cascade.delete","table":"` + w.tables.Points + `","key":{"map_id":"m-1"},"parent":{"table":"` + w.tables.Maps + `","key":{"user_id":"u-1","map_id":"m-1"}},"dedupeKey":"` + w.tables.Maps + `/u-1/m-1"}`
	answer, err := fn.Invoke(t.Context(), queueEvent(t, body, `{"kind":"unknown"}`), localtest.Patience)
	if want := `{"batchItemFailures":[{"itemIdentifier":"m1"}]}`; err != nil || string(answer.Payload) != want {
		t.Fatalf("answer %s %s, %v; want %s\n%s", answer.Payload, answer.Message, err, want, log.String())
	}
	if _, err := fn.Stop(); err != nil {
		t.Error(err)
	}
	if left := w.points(); left != 0 {
		t.Errorf("%d points of the map are left", left)
	}
	if it, err := w.store.Get(t.Context(), w.tables.Points, item.Of(item.String("map_id", "m-2"), item.String("point_id", "kept"))); !it.Exists() || err != nil {
		t.Errorf("the point of another map: %v", err)
	}
	localtest.Await(t, "the sweep", func() string {
		out, err := queues.GetQueueAttributes(t.Context(), &awssqs.GetQueueAttributesInput{QueueUrl: made.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameApproximateNumberOfMessagesDelayed}})
		if err != nil || out.Attributes["ApproximateNumberOfMessagesDelayed"] != "1" {
			return fmt.Sprint(out, err)
		}
		return ""
	})
}

// queueEvent returns Lambda's event for messages.
func queueEvent(t *testing.T, bodies ...string) []byte {
	t.Helper()
	var event struct{ Records []json.RawMessage }
	for i, body := range bodies {
		m := sluice.Message{ID: fmt.Sprint("m", i), Body: body, Received: 1, Sent: time.Now()}
		event.Records = append(event.Records, m.Record("arn:aws:sqs:us-east-1:000000000000:cascades").Raw())
	}
	data, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
