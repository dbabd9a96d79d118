package sluice

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const testQueue = "arn:aws:sqs:us-east-2:123456789012:my-queue"

var wantMessage = Message{
	Body: `{"kind":"a.try","n":123456789012345678901234567890}`, ID: "059f36b4", Received: 3,
	Sent: time.UnixMilli(1545082649183).UTC(), GroupID: "g1", DeduplicationID: "d1",
	Attributes: map[string]MessageAttribute{"n": {Type: "Number", Value: "7"}, "b": {Type: "Binary", Bytes: []byte{0, 0xff, 0x7f, 0xff}}},
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
	if rec := DecodeRecord([]byte(`{"eventSource":"aws:sqs","body":"{}"}`)); !IsPermanent(rec.Err()) || !strings.Contains(rec.Err().Error(), "no messageId") {
		t.Errorf("a message without an id: %v", rec.Err())
	}
	// A table's item may well speak of queues.
	rec := DecodeRecord([]byte(`{"eventName":"INSERT","dynamodb":{"SequenceNumber":"100000000000000000001","Keys":{"a":{"S":"aws:sqs"}}}}`))
	if _, ok := rec.Message(); ok || rec.EventName != Insert {
		t.Errorf("%+v", rec)
	}
}
