package wire

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
)

const testQueue = "arn:aws:sqs:us-east-2:123456789012:my-queue"

// An event as Lambda's documentation shows it, with a typed attribute.
const queueEvent = `{"Records":[{"messageId":"059f36b4","receiptHandle":"AQEB","body":"{\"kind\":\"a.try\",\"n\":123456789012345678901234567890}",
"attributes":{"ApproximateReceiveCount":"3","SentTimestamp":"1545082649183","SenderId":"AIDA","MessageGroupId":"g1","MessageDeduplicationId":"d1"},
"messageAttributes":{"n":{"stringValue":"7","stringListValues":[],"binaryListValues":[],"dataType":"Number"},"b":{"binaryValue":"AP9//w==","dataType":"Binary"}},
"md5OfBody":"e4e6","eventSource":"aws:sqs","eventSourceARN":"` + testQueue + `","awsRegion":"us-east-2"}]}`

var wantMessage = sluice.Message{
	Body: `{"kind":"a.try","n":123456789012345678901234567890}`, ID: "059f36b4", Received: 3,
	Sent: time.UnixMilli(1545082649183).UTC(), GroupID: "g1", DeduplicationID: "d1",
	Attributes: map[string]sluice.MessageAttribute{"n": {Type: "Number", Value: "7"}, "b": {Type: "Binary", Bytes: []byte{0, 0xff, 0x7f, 0xff}}},
}

func TestMessages(t *testing.T) {
	recs, err := Messages([]byte(queueEvent))
	if err != nil || len(recs) != 1 {
		t.Fatal(len(recs), err)
	}
	rec := &recs[0]
	if rec.Err() != nil || rec.EventName != sluice.Delivery || rec.EventID != "059f36b4" || rec.Table != "my-queue" || rec.StreamARN != testQueue || !rec.Created.Equal(wantMessage.Sent) {
		t.Errorf("%+v, %v", rec, rec.Err())
	}
	if got := string(rec.Keys.Raw()); got != `{"messageGroupId":{"S":"g1"}}` {
		t.Errorf("keys %s: messages of a group have to keep their order", got)
	}
	if v, _ := rec.New.Lookup("n"); v.Str() != "123456789012345678901234567890" {
		t.Errorf("n is %s", v.Str())
	}
	m, ok := rec.Message()
	if diff := cmp.Diff(wantMessage, m); !ok || diff != "" {
		t.Errorf("%v: %s", ok, diff)
	}
	if m.Kind() != "a.try" {
		t.Errorf("kind %q", m.Kind())
	}
}

func TestOtherEvents(t *testing.T) {
	if _, err := Messages([]byte("\uFEFF" + queueEvent)); err == nil || !strings.Contains(err.Error(), "a byte order mark (the bytes EF BB BF)") {
		t.Errorf("behind a byte order mark: %v", err)
	}
	for _, event := range []string{``, `{}`, `[]`, `{"Records":[{"eventSource":"aws:dynamodb"}]}`, `{"Records":[{"a":"aws:sqs"}]}`, `{"Records":[{"a":"aws:sqs","eventName":"MESSAGE"}]}`} {
		var envelope *sluice.EnvelopeError
		if _, err := Messages([]byte(event)); !errors.As(err, &envelope) {
			t.Errorf("%s: %v", event, err)
		}
	}
	// A message that cannot be decoded is a record.
	if recs, err := Messages([]byte(`{"Records":[{"eventSource":"aws:sqs","messageId":"m","body":"x"}]}`)); err != nil || len(recs) != 1 || recs[0].Err() == nil {
		t.Errorf("%v, %v", recs, err)
	}
}
