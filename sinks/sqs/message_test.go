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
			m[fmt.Sprint("a", i)] = sluice.StringAttribute("v")
		}
		return m
	}
	one := func(name string, a sluice.MessageAttribute) map[string]sluice.MessageAttribute {
		return map[string]sluice.MessageAttribute{name: a}
	}
	for _, c := range []struct {
		name  string
		queue string // default standard
		m     Message
		want  string // "" is accepted
	}{
		{"plain", "", Message{Body: "x"}, ""},
		{"allowed characters", "", Message{Body: "\t\n\r ~\u007f\u0085é\uD7FF\uE000\uFFFD\U00010000\U0010FFFF"}, ""},
		{"empty", "", Message{}, "the body is empty"},
		{"NUL", "", Message{Body: "a\x00"}, "a character at byte 1 "},
		{"control character", "", Message{Body: "ab\x0b"}, "a character at byte 2 "},
		{"U+FFFE", "", Message{Body: "\uFFFE"}, "a character at byte 0 "},
		{"invalid UTF-8", "", Message{Body: "é\xff"}, "a character at byte 2 "},
		{"surrogate", "", Message{Body: "\xed\xa0\x80"}, "a character at byte 0 "},
		{"largest", "", Message{Body: strings.Repeat("x", 1<<20)}, ""},
		{"too large", "", Message{Body: strings.Repeat("x", 1<<20+1)}, "1048577 bytes, more than the limit of 1048576"},
		{"too large with attributes", "", Message{Body: strings.Repeat("x", 1<<20-8), Attributes: one("ab", sluice.StringAttribute("x"))}, "1048577 bytes"},
		{"negative delay", "", Message{Body: "x", Delay: -1}, "a delay of -1ns is not possible"},
		{"too long a delay", "", Message{Body: "x", Delay: maxDelay + 1}, "send with 15m0s and let the consumer send the same message again"},
		{"group of a standard queue", "", Message{Body: "x", GroupID: "tenant"}, ""},
		{"deduplication of a standard queue", "", Message{Body: "x", DeduplicationID: "d"}, "for FIFO queues"},
		{"group missing", fifo, Message{Body: "x"}, "needs a GroupID"},
		{"delay in a FIFO queue", fifo, Message{Body: "x", GroupID: "g", Delay: time.Second}, "cannot delay a single message"},
		{"largest group", fifo, Message{Body: "x", GroupID: strings.Repeat("!", 128), DeduplicationID: strings.Repeat("~", 128)}, ""},
		{"group too long", fifo, Message{Body: "x", GroupID: strings.Repeat("g", 129)}, "GroupID "},
		{"group with a space", fifo, Message{Body: "x", GroupID: "g h"}, `GroupID with another character at byte 1`},
		{"deduplication not ASCII", fifo, Message{Body: "x", GroupID: "g", DeduplicationID: "é"}, `DeduplicationID with another character at byte 0`},
		{"ten attributes", "", Message{Body: "x", Attributes: attrs(10)}, ""},
		{"eleven attributes", "", Message{Body: "x", Attributes: attrs(11)}, "11 attributes; SQS allows 10"},
		{"attribute names", "", Message{Body: "x", Attributes: map[string]sluice.MessageAttribute{"a.b-c_D9": sluice.StringAttribute("v"), strings.Repeat("n", 256): sluice.StringAttribute("v")}}, ""},
		{"no name", "", Message{Body: "x", Attributes: one("", sluice.StringAttribute("v"))}, `attribute name ""`},
		{"long name", "", Message{Body: "x", Attributes: one(strings.Repeat("n", 257), sluice.StringAttribute("v"))}, "attribute name "},
		{"reserved name", "", Message{Body: "x", Attributes: one("aWs.x", sluice.StringAttribute("v"))}, "attribute name "},
		{"other reserved name", "", Message{Body: "x", Attributes: one("AMAZON.x", sluice.StringAttribute("v"))}, "attribute name "},
		{"dot first", "", Message{Body: "x", Attributes: one(".x", sluice.StringAttribute("v"))}, "attribute name "},
		{"dot last", "", Message{Body: "x", Attributes: one("x.", sluice.StringAttribute("v"))}, "attribute name "},
		{"dots", "", Message{Body: "x", Attributes: one("x..y", sluice.StringAttribute("v"))}, "attribute name "},
		{"name with a space", "", Message{Body: "x", Attributes: one("x y", sluice.StringAttribute("v"))}, "attribute name "},
		{"label", "", Message{Body: "x", Attributes: one("x", sluice.MessageAttribute{Type: "Number.int", Value: "1"})}, ""},
		{"type", "", Message{Body: "x", Attributes: one("x", sluice.MessageAttribute{Type: "Bool", Value: "1"})}, `of type "Bool"`},
		{"no type", "", Message{Body: "x", Attributes: one("x", sluice.MessageAttribute{Value: "1"})}, `of type ""`},
		{"empty value", "", Message{Body: "x", Attributes: one("x", sluice.StringAttribute(""))}, "needs a value in Value"},
		{"empty bytes", "", Message{Body: "x", Attributes: one("x", sluice.MessageAttribute{Type: "Binary"})}, "needs a value in Bytes"},
		{"bytes in a String", "", Message{Body: "x", Attributes: one("x", sluice.MessageAttribute{Type: "String", Bytes: []byte("v")})}, "needs a value in Value"},
		{"character in a value", "", Message{Body: "x", Attributes: one("x", sluice.StringAttribute("v\x01"))}, "character at byte 1"},
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
