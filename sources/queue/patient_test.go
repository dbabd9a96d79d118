package queue

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// A patient consumer receives from queues that answer. It is not ready while a queue
// gives no answer, and opens that queue later.
func TestPatient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "jobs", "orders")
		w.stub.send("jobs", body(1))
		w.stub.send("orders", body(2))
		answer := &fault{lost: true}
		w.stub.fault = func(call, queue string) *fault {
			if queue == "jobs" && call == "GetQueueUrl" {
				return answer
			}
			return nil
		}
		w.start(Options{Patient: true}, func(context.Context, *sluice.Record) error { return nil })
		pass(time.Minute)
		w.expectEnds(map[End]int{EndSettled: 1})
		select {
		case <-w.c.Opened():
		default:
			t.Error("it does not say that it has started")
		}
		unready := func(want string) {
			t.Helper()
			if got := strings.Join(w.c.NotReady(), "\n"); !strings.Contains(got, want) {
				t.Errorf("not ready: %q, want %q", got, want)
			}
		}
		unready("queue jobs: opening it fails since ")
		w.stub.faultMu.Lock()
		answer = &fault{code: "QueueDoesNotExist"}
		w.stub.faultMu.Unlock()
		pass(10 * time.Minute)
		unready("QueueDoesNotExist")
		w.stub.faultMu.Lock()
		answer = nil
		w.stub.faultMu.Unlock()
		pass(time.Minute)
		if h := w.c.NotReady(); len(h) > 0 {
			t.Errorf("not ready: %q", h)
		}
		w.end()
		w.expectEnds(map[End]int{EndSettled: 2})
	})
}

// An error answer of SQS for a queue ends the start. A stop ends the wait.
func TestPatientEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.stub.fault = func(string, string) *fault { return &fault{code: "QueueDoesNotExist"} }
		w.start(Options{Patient: true}, func(context.Context, *sluice.Record) error { return nil })
		pass(time.Second)
		if err := w.stop(); err == nil {
			t.Error("it has started")
		}
	})
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.stub.fault = func(string, string) *fault { return &fault{lost: true} }
		w.start(Options{Patient: true}, func(context.Context, *sluice.Record) error { return nil })
		pass(time.Minute)
		w.end()
	})
}
