package message

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
)

const queueARN = "arn:aws:sqs:eu-west-1:123456789012:attempts"

func TestHop(t *testing.T) {
	down := errors.New("the queue is down")
	for _, tt := range []struct {
		name, body string
		sendErr    error
		hops       time.Duration // 0: the handler is called
		want       string        // of the error
	}{
		{"due now", `{"notBefore":"2019-12-30T19:52:20Z"}`, nil, 0, ""},
		{"due long ago", `{"notBefore":"2009-12-30T19:52:20Z"}`, nil, 0, ""},
		{"says nothing", `{"kind":"a"}`, nil, 0, ""},
		{"due in half a second", `{"notBefore":"2019-12-30T19:52:20.5Z"}`, nil, time.Second, "not due yet"},
		{"due in a day", `{"notBefore":"2019-12-31T19:52:20Z"}`, nil, 15 * time.Minute, "not due yet"},
		{"queue is down", `{"notBefore":"2019-12-31T19:52:20Z"}`, down, 15 * time.Minute, "sending message m1 of queue attempts once more, due in 24h0m0s: the queue is down"},
		{"no time", `{"notBefore":"tomorrow"}`, nil, 0, "message m1 of queue attempts: notBefore is no time"},
		{"a number", `{"notBefore":1577735540}`, nil, 0, "notBefore is no time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var sent []sluice.Message
			called := false
			h := Hop(func(_ context.Context, m sluice.Message) error { sent = append(sent, m); return tt.sendErr }, Options{
				Now: func() time.Time { return time.Date(2019, 12, 30, 19, 52, 20, 0, time.UTC) },
			})(func(context.Context, *sluice.Record) error { called = true; return nil })
			m := sluice.Message{ID: "m1", Body: tt.body, Received: 3, GroupID: "g1", Attributes: map[string]sluice.MessageAttribute{"n": {Type: "Number.x", Value: "7"}, "b": {Type: "Binary", Bytes: []byte{0, 255}}}}
			err := h(t.Context(), m.Record(queueARN))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if wantCall := tt.hops == 0 && tt.want == ""; called != wantCall {
				t.Errorf("called %v", called)
			}
			var want []sluice.Message
			if tt.hops > 0 {
				want = []sluice.Message{{Body: m.Body, Attributes: m.Attributes, GroupID: "g1", Delay: tt.hops}}
			}
			if diff := cmp.Diff(want, sent); diff != "" {
				t.Error(diff)
			}
			if isSkip := tt.want == "not due yet"; sluice.IsSkip(err) != isSkip {
				t.Errorf("%v: skip %v, want %v", err, !isSkip, isSkip)
			}
			if tt.sendErr != nil && sluice.IsPermanent(err) {
				t.Error("a queue that is down fails the message for good")
			}
		})
	}
}

func TestHopIsForMessages(t *testing.T) {
	h := Hop(func(context.Context, sluice.Message) error { return nil }, Options{})(func(context.Context, *sluice.Record) error { return nil })
	if err := h(t.Context(), &sluice.Record{EventName: sluice.Insert, Table: "orders"}); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "not for a INSERT of table orders") {
		t.Error(err)
	}
}

// A delay that is cut to nothing would make a message due at once.
func TestHopRefusesPartsOfASecond(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("hops of half a second were taken")
		}
	}()
	Hop(func(context.Context, sluice.Message) error { return nil }, Options{MaxDelay: time.Second / 2})
}
