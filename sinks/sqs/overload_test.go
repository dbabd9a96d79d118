package sqs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// Every refusal for load is Overloaded, of a message and of a whole request. No other
// error is.
func TestOverloaded(t *testing.T) {
	for _, tt := range []struct {
		status    int // of a whole request; 0: of a message
		code      string
		want      bool
		permanent bool
	}{
		{0, "sender:KmsThrottled", true, false},
		{0, "sender:KMS.ThrottlingException", true, false},
		{0, "sender:RequestThrottled", true, false},
		{0, "ThrottlingException", true, false},
		{0, "AWS.SimpleQueueService.OverLimit", true, false},
		{0, "InternalError", false, false},
		{0, "ServiceUnavailable", false, false},
		{0, "sender:KmsDisabled", false, false},
		{0, "sender:AccessDenied", false, false},
		{0, "sender:InvalidMessageContents", false, true},
		{400, "RequestThrottled", true, false},
		{403, "RequestThrottled", true, false}, // which status SQS's query protocol has for it
		{400, "ThrottlingException", true, false},
		{400, "Throttling", true, false},
		{400, "OverLimit", true, false},
		{400, "KmsThrottled", true, false},
		{400, "AccessDenied", false, false},
		{400, "QueueDoesNotExist", false, false},
		{400, "BatchRequestTooLong", false, true},
		{500, "InternalFailure", false, false},
		{503, "ServiceUnavailable", false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := stub{reply: func(int, sent) answer {
				if tt.status == 0 {
					return answer{refused: map[string]string{"a": tt.code}}
				}
				return answer{status: tt.status, code: tt.code}
			}}
			err := s.queue(t, standard, Options{}).Send(t.Context(), messages("a")[0])
			if err == nil || outcomes.IsOverloaded(err) != tt.want || sluice.IsPermanent(err) != tt.permanent {
				t.Errorf("%d %s: overloaded %v, permanent %v: %v", tt.status, tt.code, outcomes.IsOverloaded(err), sluice.IsPermanent(err), err)
			}
		})
	}
}

// A name cannot be looked up while SQS refuses for load.
func TestOverloadedWhenTheQueueIsLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stub{status: 400, code: "RequestThrottled"}
		err := s.queue(t, "jobs", Options{}).Send(t.Context(), messages("a")[0])
		if !outcomes.IsOverloaded(err) {
			t.Errorf("not overloaded: %v", err)
		}
	})
}

// The time of a call ends after a refusal: during the next try, or the pause before
// it. A refusal for load counts if it is the last answer, and the error has its code.
func TestRefusedBeforeTheTimeRanOut(t *testing.T) {
	ofMessage, ofRequest := answer{refused: map[string]string{"a": "RequestThrottled"}}, answer{code: "RequestThrottled"}
	hang := answer{hang: true}
	for _, tt := range []struct {
		name    string
		queue   string
		answers []answer
		pause   time.Duration
		want    bool
		told    string
	}{
		{"request, try", standard, []answer{ofRequest, hang}, time.Millisecond, true, "RequestThrottled"},
		{"request, pause", standard, []answer{ofRequest}, time.Hour, true, "RequestThrottled"},
		{"message, try", standard, []answer{ofMessage, hang}, time.Millisecond, true, "RequestThrottled"},
		{"message, then request", standard, []answer{ofMessage, ofRequest, hang}, time.Millisecond, true, "SendMessageBatch"},
		{"then a failure", standard, []answer{ofRequest, {status: 500, code: "InternalFailure"}, hang}, time.Millisecond, false, "deadline"},
		{"then another refusal", standard, []answer{ofMessage, {code: "AccessDenied"}}, time.Millisecond, false, "AccessDenied"},
		{"its name is looked up", "jobs", nil, time.Hour, true, "RequestThrottled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stub{retries: tt.pause, reply: func(n int, _ sent) answer { return tt.answers[n] }}
				if tt.answers == nil {
					s.status, s.code = 400, "RequestThrottled"
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := s.queue(t, tt.queue, Options{Timeout: time.Hour, Backoff: time.Millisecond}).Send(ctx, messages("a")[0])
				if outcomes.IsOverloaded(err) != tt.want || sluice.IsPermanent(err) || !strings.Contains(err.Error(), tt.told) {
					t.Errorf("overloaded %v: %v", outcomes.IsOverloaded(err), err)
				}
			})
		})
	}
}

// No time is left after a refusal for load. The later message of its group tells the
// refusal, that of another group tells the time.
func TestRefusedBeforeTheOthersOfItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stub{reply: func(int, sent) answer { return answer{refused: map[string]string{"a/1": "RequestThrottled"}} }}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
		defer cancel()
		errs := s.queue(t, fifo, Options{Backoff: 1 << 52}).SendAll(ctx, messages("a/1", "b/1", "a/2", "b/2"))
		if len(errs) != 4 || !outcomes.IsOverloaded(errs[0]) || errs[1] != nil || !outcomes.IsOverloaded(errs[2]) || !errors.Is(errs[3], context.DeadlineExceeded) || outcomes.IsOverloaded(errs[3]) {
			t.Errorf("%v", errs)
		}
	})
}

// A connection that is silently dead costs a third of the time. The next try sends the
// messages.
func TestSilentConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stub{reply: func(n int, _ sent) answer { return answer{hang: n == 0} }}
		q := s.queue(t, standard, Options{Timeout: time.Minute})
		for _, requests := range []int{2, 3} {
			if err := q.Send(t.Context(), messages("a")[0]); err != nil || len(s.requests) != requests {
				t.Errorf("%d requests, %v", len(s.requests), err)
			}
		}
		s.reply = func(int, sent) answer { return answer{hang: true} }
		if err := q.Send(t.Context(), messages("a")[0]); err == nil || !strings.Contains(err.Error(), "deadline") || sluice.IsPermanent(err) {
			t.Error(err)
		}
	})
}

// A person ends a check during its second try. The error says so, not the refusal
// before.
func TestRefusedBeforeItWasCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stub{retries: time.Hour, status: 400, code: "RequestThrottled"}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		if err := s.queue(t, "jobs", Options{}).Check(ctx); !errors.Is(err, context.Canceled) || outcomes.IsOverloaded(err) {
			t.Error(err)
		}
	})
}
