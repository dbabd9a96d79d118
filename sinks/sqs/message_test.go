package sqs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// A message that SQS would never take is Permanent and spoils no request.
func TestMessagesAreValidated(t *testing.T) {
	attrs := func(n int) map[string]sluice.MessageAttribute {
		m := map[string]sluice.MessageAttribute{}
		for i := range n {
			m[fmt.Sprint("a", i)] = sluice.MessageAttribute{Value: "v"}
		}
		return m
	}
	one := func(name string, a sluice.MessageAttribute) map[string]sluice.MessageAttribute {
		return map[string]sluice.MessageAttribute{name: a}
	}
	for _, c := range []struct {
		name  string
		queue string // default standard
		m     sluice.Message
		want  string // "" is accepted
	}{
		{"plain", "", sluice.Message{Body: "x"}, ""},
		{"allowed characters", "", sluice.Message{Body: "\t\n\r ~\u007f\u0085é\uD7FF\uE000\uFFFD\U00010000\U0010FFFF"}, ""},
		{"empty", "", sluice.Message{}, "the body is empty"},
		{"NUL", "", sluice.Message{Body: "a\x00"}, "a character at byte 1 "},
		{"control character", "", sluice.Message{Body: "ab\x0b"}, "a character at byte 2 "},
		{"U+FFFE", "", sluice.Message{Body: "\uFFFE"}, "a character at byte 0 "},
		{"invalid UTF-8", "", sluice.Message{Body: "é\xff"}, "a character at byte 2 "},
		{"surrogate", "", sluice.Message{Body: "\xed\xa0\x80"}, "a character at byte 0 "},
		{"largest", "", sluice.Message{Body: strings.Repeat("x", 1<<20)}, ""},
		{"too large", "", sluice.Message{Body: strings.Repeat("x", 1<<20+1)}, "1048577 bytes, more than the limit of 1048576"},
		{"too large with attributes", "", sluice.Message{Body: strings.Repeat("x", 1<<20-8), Attributes: one("ab", sluice.MessageAttribute{Value: "x"})}, "1048577 bytes"},
		{"negative delay", "", sluice.Message{Body: "x", Delay: -1}, "a delay of -1ns is not possible"},
		{"too long a delay", "", sluice.Message{Body: "x", Delay: maxDelay + 1}, "send with 15m0s and let the consumer send the same message again"},
		{"group of a standard queue", "", sluice.Message{Body: "x", GroupID: "tenant"}, ""},
		{"deduplication of a standard queue", "", sluice.Message{Body: "x", DeduplicationID: "d"}, "for FIFO queues"},
		{"group missing", fifo, sluice.Message{Body: "x"}, "needs a GroupID"},
		{"delay in a FIFO queue", fifo, sluice.Message{Body: "x", GroupID: "g", Delay: time.Second}, "cannot delay a single message"},
		{"largest group", fifo, sluice.Message{Body: "x", GroupID: strings.Repeat("!", 128), DeduplicationID: strings.Repeat("~", 128)}, ""},
		{"group too long", fifo, sluice.Message{Body: "x", GroupID: strings.Repeat("g", 129)}, "GroupID "},
		{"group with a space", fifo, sluice.Message{Body: "x", GroupID: "g h"}, `GroupID with another character at byte 1`},
		{"deduplication not ASCII", fifo, sluice.Message{Body: "x", GroupID: "g", DeduplicationID: "é"}, `DeduplicationID with another character at byte 0`},
		{"ten attributes", "", sluice.Message{Body: "x", Attributes: attrs(10)}, ""},
		{"eleven attributes", "", sluice.Message{Body: "x", Attributes: attrs(11)}, "11 attributes; SQS allows 10"},
		{"attribute names", "", sluice.Message{Body: "x", Attributes: map[string]sluice.MessageAttribute{"a.b-c_D9": {Value: "v"}, strings.Repeat("n", 256): {Value: "v"}}}, ""},
		{"no name", "", sluice.Message{Body: "x", Attributes: one("", sluice.MessageAttribute{Value: "v"})}, `attribute name ""`},
		{"long name", "", sluice.Message{Body: "x", Attributes: one(strings.Repeat("n", 257), sluice.MessageAttribute{Value: "v"})}, "attribute name "},
		{"reserved name", "", sluice.Message{Body: "x", Attributes: one("aWs.x", sluice.MessageAttribute{Value: "v"})}, "attribute name "},
		{"other reserved name", "", sluice.Message{Body: "x", Attributes: one("AMAZON.x", sluice.MessageAttribute{Value: "v"})}, "attribute name "},
		{"dot first", "", sluice.Message{Body: "x", Attributes: one(".x", sluice.MessageAttribute{Value: "v"})}, "attribute name "},
		{"dot last", "", sluice.Message{Body: "x", Attributes: one("x.", sluice.MessageAttribute{Value: "v"})}, "attribute name "},
		{"dots", "", sluice.Message{Body: "x", Attributes: one("x..y", sluice.MessageAttribute{Value: "v"})}, "attribute name "},
		{"name with a space", "", sluice.Message{Body: "x", Attributes: one("x y", sluice.MessageAttribute{Value: "v"})}, "attribute name "},
		{"label", "", sluice.Message{Body: "x", Attributes: one("x", sluice.MessageAttribute{Type: "Number.int", Value: "1"})}, ""},
		{"type", "", sluice.Message{Body: "x", Attributes: one("x", sluice.MessageAttribute{Type: "Bool", Value: "1"})}, `of type "Bool"`},
		{"no type", "", sluice.Message{Body: "x", Attributes: one("x", sluice.MessageAttribute{Value: "1"})}, ""},
		{"empty value", "", sluice.Message{Body: "x", Attributes: one("x", sluice.MessageAttribute{Value: ""})}, "needs a value in Value"},
		{"empty bytes", "", sluice.Message{Body: "x", Attributes: one("x", sluice.MessageAttribute{Type: "Binary"})}, "needs a value in Bytes"},
		{"bytes in a String", "", sluice.Message{Body: "x", Attributes: one("x", sluice.MessageAttribute{Type: "String", Bytes: []byte("v")})}, "needs a value in Value"},
		{"character in a value", "", sluice.Message{Body: "x", Attributes: one("x", sluice.MessageAttribute{Value: "v\x01"})}, "character at byte 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s stub
			queue := standard
			if c.queue != "" {
				queue = c.queue
			}
			q := s.queue(t, queue, Options{Linger: 1})
			err := q.Send(t.Context(), c.m)
			if c.want == "" {
				if err != nil || len(s.requests) != 1 {
					t.Errorf("%d requests, error %v", len(s.requests), err)
				}
				return
			}
			if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), `sqs: queue "jobs`) {
				t.Errorf("got %v, want Permanent with %q", err, c.want)
			}
			if len(s.calls) != 0 {
				t.Errorf("calls %q for a message that SQS would not take", s.calls)
			}
		})
	}
}
