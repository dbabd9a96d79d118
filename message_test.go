package sluice

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const testQueue = "arn:aws:sqs:us-east-2:123456789012:my-queue"

// An event as Lambda's documentation shows it, with a typed attribute.
const queueEvent = `{"Records":[{"messageId":"059f36b4","receiptHandle":"AQEB","body":"{\"kind\":\"a.try\",\"n\":123456789012345678901234567890}",
"attributes":{"ApproximateReceiveCount":"3","SentTimestamp":"1545082649183","SenderId":"AIDA","MessageGroupId":"g1","MessageDeduplicationId":"d1"},
"messageAttributes":{"n":{"stringValue":"7","stringListValues":[],"binaryListValues":[],"dataType":"Number"},"b":{"binaryValue":"AP9//w==","dataType":"Binary"}},
"md5OfBody":"e4e6","eventSource":"aws:sqs","eventSourceARN":"` + testQueue + `","awsRegion":"us-east-2"}]}`

var wantMessage = Message{
	Body: `{"kind":"a.try","n":123456789012345678901234567890}`, ID: "059f36b4", Received: 3,
	Sent: time.UnixMilli(1545082649183).UTC(), GroupID: "g1", DeduplicationID: "d1",
	Attributes: map[string]MessageAttribute{"n": {Type: "Number", Value: "7"}, "b": {Type: "Binary", Bytes: []byte{0, 0xff, 0x7f, 0xff}}},
}

func TestDecodeMessages(t *testing.T) {
	recs, err := DecodeMessages([]byte(queueEvent))
	if err != nil || len(recs) != 1 {
		t.Fatal(len(recs), err)
	}
	rec := &recs[0]
	if rec.Err() != nil || rec.EventName != Delivery || rec.EventID != "059f36b4" || rec.Table != "my-queue" || rec.StreamARN != testQueue || !rec.Created.Equal(wantMessage.Sent) {
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

// What a dead letter keeps of a message is all of it, whoever received it.
func TestMessageRecordAndBack(t *testing.T) {
	want := wantMessage
	rec := DecodeRecord(want.Record(testQueue).Raw())
	if rec.Err() != nil {
		t.Fatal(rec.Err())
	}
	m, ok := rec.Message()
	if diff := cmp.Diff(want, m); !ok || diff != "" {
		t.Errorf("%v: %s", ok, diff)
	}
	plain := Message{ID: "m1", Body: `{}`}
	if got := string(plain.Record(testQueue).Keys.Raw()); got != `{"messageId":{"S":"m1"}}` {
		t.Errorf("keys %s: messages without a group have no order among each other", got)
	}
}

func TestMessagesOfOtherShapes(t *testing.T) {
	for body, want := range map[string]string{
		`[1]`: "no JSON object", `{"a":1`: "no JSON object", `{} {}`: "data after", ``: "no JSON object",
		`{"a":1,"a":2}`: "duplicate", `{"a":1e400}`: "a",
	} {
		m := Message{ID: "m1", Body: body}
		err := m.Record(testQueue).Err()
		if err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "message m1 of queue my-queue") {
			t.Errorf("body %q: %v, want %q", body, err, want)
		}
	}
	if _, err := DecodeMessages([]byte("\uFEFF" + queueEvent)); err == nil || !strings.Contains(err.Error(), "a byte order mark (the bytes EF BB BF)") {
		t.Errorf("behind a byte order mark: %v", err)
	}
	for _, event := range []string{``, `{}`, `[]`, `{"Records":[{"eventSource":"aws:dynamodb"}]}`, `{"Records":[{"a":"aws:sqs"}]}`} {
		var envelope *EnvelopeError
		if _, err := DecodeMessages([]byte(event)); !errors.As(err, &envelope) {
			t.Errorf("%s: %v", event, err)
		}
	}
	if rec := DecodeRecord([]byte(`{"eventSource":"aws:sqs","body":"{}"}`)); !IsPermanent(rec.Err()) || !strings.Contains(rec.Err().Error(), "no messageId") {
		t.Errorf("a message without an id: %v", rec.Err())
	}
	// A table's item may well speak of queues.
	rec := DecodeRecord([]byte(`{"eventName":"INSERT","dynamodb":{"SequenceNumber":"100000000000000000001","Keys":{"a":{"S":"aws:sqs"}}}}`))
	if _, ok := rec.Message(); ok || rec.EventName != Insert {
		t.Errorf("%+v", rec)
	}
}
