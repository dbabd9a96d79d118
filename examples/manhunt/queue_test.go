//go:build integration

package manhunt

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sinks/sqs"
)

// TestQueue sends through a real queue: bodies and attributes arrive as they
// were made, and a delay holds a message back.
func TestQueue(t *testing.T) {
	cfg := localtest.SQS(t)
	client := awssqs.NewFromConfig(cfg)
	made, err := client.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: aws.String(localtest.Name("manhunt"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if _, err := client.DeleteQueue(context.Background(), &awssqs.DeleteQueueInput{QueueUrl: made.QueueUrl}); err != nil {
			t.Error(err)
		}
	})
	queue, err := sqs.New(cfg, *made.QueueUrl, sqs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fx := Fixtures()
	now := time.Date(2019, 12, 30, 20, 0, 0, 0, time.UTC) // all waits are over
	r, err := NewRouter(Deps{Store: newDB(fx[:attempt]...), Send: queue.Send, Watch: ignore, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	dispatch := func(rec sluice.Record) {
		t.Helper()
		if err := r.Dispatch(t.Context(), &rec); err != nil {
			t.Fatal(err)
		}
	}
	dispatch(inserted(fx[search]))
	dispatch(change(fx[attempt], fx[attempted]))
	dispatch(change(edit(secondAttempt(), attemptedAt, ""), secondAttempt()))
	now = time.Date(2019, 12, 30, 19, 32, 21, 0, time.UTC) // the call is due in 20 minutes
	dispatch(change(fx[attempt], fx[attempted]))

	got := make(map[string]string) // notBefore and dedupeKey by body
	for len(got) < 3 {
		out, err := client.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{
			QueueUrl: made.QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 5, MessageAttributeNames: []string{"All"},
		})
		if err != nil || len(out.Messages) == 0 {
			t.Fatalf("received %d messages, %v", len(got), err)
		}
		for _, m := range out.Messages {
			var attributes string
			for _, name := range slices.Sorted(maps.Keys(m.MessageAttributes)) {
				a := m.MessageAttributes[name]
				attributes += name + " " + *a.DataType + " " + *a.StringValue + "; "
			}
			got[*m.Body] = attributes
		}
	}
	want := map[string]string{
		firstBody:  "dedupeKey String a271244#0; notBefore String 2019-12-30T19:32:14Z; ",
		secondBody: "dedupeKey String a271244#1; notBefore String 2019-12-30T19:52:20Z; ",
		expiryBody: "dedupeKey String a271244#expire; notBefore String 2019-12-30T19:57:25Z; ",
	}
	if !maps.Equal(got, want) {
		t.Errorf("received %q\nwant %q", got, want)
	}
	localtest.Await(t, "one delayed message", func() string {
		out, err := client.GetQueueAttributes(t.Context(), &awssqs.GetQueueAttributesInput{QueueUrl: made.QueueUrl, AttributeNames: []types.QueueAttributeName{"ApproximateNumberOfMessagesDelayed"}})
		if err != nil || out.Attributes["ApproximateNumberOfMessagesDelayed"] != "1" {
			return fmt.Sprint(out, err)
		}
		return ""
	})
}
