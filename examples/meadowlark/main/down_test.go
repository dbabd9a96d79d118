//go:build integration

package main

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/meadowlark"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/streamtest"
)

// alert takes the next message about a dangling reference.
func (w *world) alert() (body string) {
	w.t.Helper()
	localtest.Await(w.t, "an alert", func() string {
		out, err := w.queues.ReceiveMessage(w.t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: aws.String(w.env["MEADOWLARK_ALERTS"]), WaitTimeSeconds: 1})
		if err != nil || len(out.Messages) == 0 {
			return fmt.Sprint("none; ", err)
		}
		body = *out.Messages[0].Body
		if _, err := w.queues.DeleteMessage(w.t.Context(), &awssqs.DeleteMessageInput{QueueUrl: aws.String(w.env["MEADOWLARK_ALERTS"]), ReceiptHandle: out.Messages[0].ReceiptHandle}); err != nil {
			w.t.Fatal(err)
		}
		return ""
	})
	return body
}

func (w *world) awaitCopy(it int, there bool) {
	w.t.Helper()
	localtest.Await(w.t, "a copy", func() string {
		if v, _ := w.doc(it); (v > 0) != there {
			return fmt.Sprintf("copy %d has version %d", it, v)
		}
		return ""
	})
}

// A daemon that starts while OpenSearch is down tells of what dangles, and deletes
// the copy when it is back.
func TestDaemonWithoutOpenSearch(t *testing.T) {
	w := newWorld(t)
	fx := meadowlark.Fixtures()
	for _, it := range fx {
		if err := w.store.Write(t.Context(), dynamo.Put(w.table, it)); err != nil {
			t.Fatal(err)
		}
	}
	stop := w.daemon()
	w.awaitCopy(course, true)
	w.awaitCopy(school, true)
	stop()
	if err := w.store.Delete(t.Context(), w.table, fx[school].Only("pk", "sk")); err != nil {
		t.Fatal(err)
	}
	back := w.proxy.Fail(streamtest.ProxyFault{Drop: true})
	stop = w.daemon()
	w.alert()
	back()
	w.awaitCopy(school, false)
	w.awaitCopy(course, true)
	stop()
}
