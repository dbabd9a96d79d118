package sqs

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
)

// limited answers as a queue does whose limit is 256 KiB.
func limited(_ int, req sent) answer {
	total := 0
	for _, e := range req.Entries {
		total += len(e.MessageBody)
	}
	if total > 262144 {
		return answer{code: "BatchRequestTooLong", message: fmt.Sprintf("Batch requests cannot be longer than 262144 bytes. You have sent %d bytes.", total)}
	}
	return answer{}
}

// The limit of a queue that could not be asked is learned from the first refusal:
// later requests are within it, and later messages that are not are never sent.
func TestLimitIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{reply: limited, denied: true}
		q := s.queue(t, standard, Options{})
		if err := q.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		var ms []sluice.Message
		for range 6 {
			ms = append(ms, sluice.Message{Body: strings.Repeat("x", 100_000)})
		}
		sizes := func() (all []int) {
			for _, r := range s.requests {
				all = append(all, len(r.Entries))
			}
			s.requests = nil
			return all
		}
		if errs := q.SendAll(t.Context(), ms); errs != nil {
			t.Fatal(errs)
		}
		if got := fmt.Sprint(sizes()); got != "[6 2 2 2]" {
			t.Errorf("the first requests have %s messages", got)
		}
		if errs := q.SendAll(t.Context(), ms[:5]); errs != nil {
			t.Fatal(errs)
		}
		if got := fmt.Sprint(sizes()); got != "[2 2 1]" {
			t.Errorf("later requests have %s messages", got)
		}
		err := q.Send(t.Context(), sluice.Message{Body: strings.Repeat("x", 300_000)})
		if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "300000 bytes, more than the limit of 262144") || len(s.requests) > 0 {
			t.Errorf("%v, %v requests", err, sizes())
		}
	})
}

// The queue learns the limit from a single message that is too large, whether SQS
// refuses the message or the request.
func TestLimitIsLearnedFromOneMessage(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for name, s := range map[string]*stub{
		"of the message": {text: "One or more parameters are invalid. Reason: Message must be shorter than 2048 bytes.", reply: func(int, sent) answer {
			return answer{refused: map[string]string{long: "sender:InvalidParameterValue"}}
		}},
		"of the request": {reply: func(int, sent) answer {
			return answer{code: "BatchRequestTooLong", message: "Batch requests cannot be longer than 2048 bytes. You have sent 3000 bytes."}
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := s.queue(t, standard, Options{})
			for i, want := range []string{"2048 bytes", "3000 bytes, more than the limit of 2048"} {
				if err := q.Send(t.Context(), sluice.Message{Body: long}); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), want) || len(s.requests) != 1 {
					t.Errorf("%s, %d: %v, %d requests", name, i, err, len(s.requests))
				}
			}
		})
	}
}

func TestLimitIn(t *testing.T) {
	for message, want := range map[string]int64{
		"Message must be shorter than 262144 bytes.":              262144,
		"Batch requests cannot be longer than 1048576 bytes. You": 1048576,
		"cannot be longer than 80 bytes":                          0,
		"longer than 99999999999999999999 bytes":                  0,
		"no such queue":                                           0,
	} {
		if got := limitIn(message); got != want {
			t.Errorf("%q: %d, want %d", message, got, want)
		}
	}
}

// An answer of something before SQS is no JSON.
func TestTooLargeForWhatStandsBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{reply: func(_ int, req sent) answer {
			if len(req.Entries) > 1 {
				return answer{status: 413, code: "RequestEntityTooLarge"}
			}
			return answer{}
		}}
		if errs := s.queue(t, standard, Options{}).SendAll(t.Context(), messages("a", "b")); errs != nil {
			t.Error(errs)
		}
	})
}

// A FIFO queue without content-based deduplication takes no message without an
// id: that is found at the start, and never blamed on a message.
func TestFIFOWithoutDeduplication(t *testing.T) {
	for _, tt := range []struct {
		name  string
		queue string
		based string // ContentBasedDeduplication
		ids   bool
		want  string
	}{
		{"neither", fifo, "false", false, "FIFO queue without content-based deduplication"},
		{"ids", fifo, "false", true, ""},
		{"by content", fifo, "true", false, ""},
		{"not told", fifo, "", false, ""},
		{"standard", standard, "", false, ""},
	} {
		s := &stub{attributes: map[string]string{"DelaySeconds": "0", "ContentBasedDeduplication": tt.based}}
		err := s.queue(t, tt.queue, Options{DeduplicationIDs: tt.ids}).Check(t.Context())
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if asked := strings.Contains(s.names[0], "ContentBasedDeduplication"); asked != (tt.queue == fifo) {
			t.Errorf("%s: asked for %s", tt.name, s.names[0])
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := &stub{text: "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly", reply: func(int, sent) answer {
			return answer{refused: map[string]string{"g/1": "sender:InvalidParameterValue"}}
		}}
		m := messages("g/1")[0]
		if err := s.queue(t, fifo, Options{}).Send(t.Context(), m); err == nil || sluice.IsPermanent(err) {
			t.Errorf("without Check: %v", err)
		}
		s.requests = nil
		if err := s.queue(t, fifo, Options{DeduplicationIDs: true}).Send(t.Context(), m); !sluice.IsPermanent(err) || len(s.requests) > 0 {
			t.Errorf("without the id that all have: %v", err)
		}
	})
}

// With only the right to send, sending works. The log names the skipped checks.
func TestCheckWithoutTheRight(t *testing.T) {
	var log bytes.Buffer
	s := &stub{denied: true}
	q := s.queue(t, fifo, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := q.Check(t.Context()); err != nil || !strings.Contains(log.String(), "permission sqs:GetQueueAttributes") {
		t.Errorf("%v, %s", err, &log)
	}
}
