package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
)

var errDown = errors.New("down")

func TestNoRoute(t *testing.T) {
	_, err := New(aws.Config{}, router.New(), Options{Queues: []string{"jobs"}})
	if err == nil || err.Error() != "queue: there is no route: nothing would be handled" {
		t.Error(err)
	}
}

func TestSettledIsDeleted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		var want []string
		for i := range 25 {
			want = append(want, fmt.Sprint(i))
			w.stub.send("jobs", body(i))
		}
		w.stub.queues["jobs"].ms[0].attributes = map[string]any{"a": map[string]any{"DataType": "String", "StringValue": "x"}}
		w.start(Options{}, func(_ context.Context, rec *sluice.Record) error {
			m, ok := rec.Message()
			if !ok || m.Received != 1 || !m.Sent.Equal(rec.Created) || rec.StreamARN != "arn:aws:sqs:us-east-1:1:jobs" || rec.Table != "jobs" || rec.EventID != m.ID {
				t.Errorf("record %+v of message %+v", rec, m)
			}
			if nOf(rec) == "0" && m.Attributes["a"].Value != "x" {
				t.Errorf("attributes %v", m.Attributes)
			}
			if nOf(rec) == "7" {
				return sluice.Skip("nothing to do")
			}
			return nil
		})
		pass(time.Second)
		got := w.calls()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("handled %q", got)
		}
		w.expectLeft("jobs")
		if n := w.stub.count("DeleteMessageBatch"); n > 5 {
			t.Errorf("%d calls delete 25 messages", n)
		}
		if h := w.c.NotReady(); len(h) > 0 {
			t.Errorf("not ready: %q", h)
		}
		w.end()
		w.expectEnds(map[End]int{EndSettled: 25})
		if h := w.c.NotReady(); len(h) == 0 {
			t.Error("ready after its end")
		}
	})
}

func TestFailedComesAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.stub.send("jobs", body(1))
		n := 0
		w.start(Options{}, func(context.Context, *sluice.Record) error {
			if n++; n < 8 {
				return errDown
			}
			return nil
		})
		pass(10 * time.Minute)
		w.end()
		w.expectLeft("jobs")
		w.expectEnds(map[End]int{EndReturned: 7, EndSettled: 1})
		for i := range 7 {
			if gap, most := w.times[i+1].Sub(w.times[i]), time.Second<<i+time.Second; gap < 990*time.Millisecond || gap > most {
				t.Errorf("%v after failure %d, want 1 s to %v", gap, i+1, most)
			}
		}
	})
}

func TestDelayThatIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		err  error
		want time.Duration
	}{
		{sluice.RetryAfter(37*time.Minute, errDown), 37 * time.Minute},
		{&sluice.Remaining{After: 3 * time.Hour, Err: errDown}, 3 * time.Hour},
		{&sluice.Remaining{After: 2 * time.Hour}, 2 * time.Hour},
		{sluice.RetryAfter(1500*time.Millisecond, errDown), 2 * time.Second},
		{sluice.RetryAfter(48*time.Hour, errDown), 12*time.Hour - 10*time.Second}, // SQS's most
	} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			w.stub.send("jobs", body(1))
			first := true
			w.start(Options{}, func(context.Context, *sluice.Record) error {
				if first {
					first = false
					return c.err
				}
				return nil
			})
			pass(c.want - time.Second)
			if len(w.calls()) != 1 {
				t.Errorf("%v: %d calls too early", c.err, len(w.calls()))
			}
			pass(3 * time.Second)
			w.end()
			if len(w.calls()) != 2 {
				t.Errorf("%v: %d calls", c.err, len(w.calls()))
			}
			w.expectLeft("jobs")
		})
	}
}

// A handler that takes long keeps its message, also past its route's timeout.
func TestVisibilityIsExtended(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "jobs", "jobs.fifo")
		w.stub.send("jobs", body(1))
		w.stub.send("jobs.fifo", "g/"+body(2), "g/"+body(3))
		r := routesOf(func(context.Context, *sluice.Record) error {
			time.Sleep(time.Hour)
			return nil
		}, "job")
		r.list[0].Timeout = time.Minute
		w.startRoutes(Options{}, r)
		// An extension that fails is tried again in time.
		w.stub.mu.Lock()
		n := map[string]int{}
		w.stub.fault = func(call, queue string) *fault {
			if call == "ChangeMessageVisibilityBatch" {
				if n[queue]++; n[queue]%3 != 0 {
					return &fault{code: "InternalError", status: 500}
				}
			}
			return nil
		}
		w.stub.mu.Unlock()
		pass(150 * time.Minute)
		w.end()
		w.expectLeft("jobs")
		w.expectLeft("jobs.fifo")
		w.expectEnds(map[End]int{EndSettled: 3})
		for _, id := range []string{"jobs-001", "jobs.fifo-001", "jobs.fifo-002"} {
			if m := w.stub.find(id); m.received != 1 {
				t.Errorf("%s was received %d times", id, m.received)
			}
		}
	})
}

// SQS hides a message for twelve hours at most. When it comes again while its
// handler still runs, it is not started once more.
// A message is hidden since SQS gave it, which may be long before the answer is
// here.
func TestSlowAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.stub.send("jobs", body(1))
		first := true
		w.stub.fault = func(call, _ string) *fault {
			if call != "ReceiveMessage" || !first {
				return nil
			}
			first = false
			return &fault{late: 28 * time.Second}
		}
		w.start(Options{}, func(context.Context, *sluice.Record) error {
			time.Sleep(2 * time.Minute)
			return nil
		})
		pass(5 * time.Minute)
		w.end()
		w.expectLeft("jobs")
		if m := w.stub.find("jobs-001"); m.received != 1 {
			t.Errorf("received %d times", m.received)
		}
	})
}

func TestTwelveHours(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.stub.send("jobs", body(1))
		w.start(Options{}, func(context.Context, *sluice.Record) error {
			time.Sleep(14 * time.Hour)
			return nil
		})
		pass(15 * time.Hour)
		w.end()
		if len(w.calls()) != 1 || w.stub.find("jobs-001").received != 2 {
			t.Errorf("%d calls, received %d times", len(w.calls()), w.stub.find("jobs-001").received)
		}
		w.expectLeft("jobs")
		w.expectEnds(map[End]int{EndSettled: 1})
	})
}

// Then another consumer gets the message, and this one reports the loss.
func TestTwelveHoursElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.stub.send("jobs", body(1))
		w.start(Options{Concurrency: 1}, func(context.Context, *sluice.Record) error { // no place to receive it again
			time.Sleep(13 * time.Hour)
			return nil
		})
		pass(14 * time.Hour)
		w.end()
		if !strings.Contains(w.logged(), "somebody else may have it") {
			t.Errorf("not told:\n%s", w.logged())
		}
	})
}

func TestConcurrencyBoundsTheHand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range 100 {
			w.stub.send("jobs", body(i))
		}
		var now, most atomic.Int32
		w.start(Options{Concurrency: 33}, func(context.Context, *sluice.Record) error {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Minute)
			now.Add(-1)
			return nil
		})
		hidden := func() (n int) {
			w.stub.mu.Lock()
			defer w.stub.mu.Unlock()
			for _, m := range w.stub.queues["jobs"].ms {
				if !m.gone && m.visible.After(time.Now()) {
					n++
				}
			}
			return n
		}
		for range 30 {
			pass(7 * time.Second)
			if n := hidden(); n > 33 {
				t.Errorf("%d messages in hand", n)
			}
		}
		pass(time.Hour)
		w.end()
		w.expectLeft("jobs")
		if most.Load() != 33 {
			t.Errorf("%d at a time, want 33", most.Load())
		}
	})
}

// A message that comes twice while it is in hand is started once, and deleted
// by the handle that counts.
func TestDuplicateInHand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.stub.send("jobs", body(1))
		w.start(Options{}, func(context.Context, *sluice.Record) error {
			time.Sleep(10 * time.Second)
			return nil
		})
		pass(time.Second)
		w.stub.mu.Lock()
		w.stub.queues["jobs"].ms[0].visible = time.Now()
		w.stub.poke()
		w.stub.mu.Unlock()
		pass(20 * time.Second)
		w.end()
		if m := w.stub.find("jobs-001"); m.received != 2 || !m.gone || len(w.calls()) != 1 {
			t.Errorf("received %d times, gone %v, %d calls", m.received, m.gone, len(w.calls()))
		}
		w.expectEnds(map[End]int{EndSettled: 1})
	})
}

func TestDeletesThatFail(t *testing.T) {
	for name, f := range map[string]fault{
		"throttled":      {code: "ThrottlingException"},
		"unavailable":    {code: "ServiceUnavailable", status: 503},
		"lost":           {lost: true},
		"done and lost":  {lost: true, after: true},
		"an entry":       {entry: map[int]string{0: "InternalError", 2: "InternalError"}},
		"a silent entry": {silent: map[int]bool{1: true}},
		"expired":        {code: "ExpiredToken", status: 403},
	} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			for i := range 5 {
				w.stub.send("jobs", body(i))
			}
			n := 0
			w.stub.fault = func(call, _ string) *fault {
				if call == "DeleteMessageBatch" {
					if n++; n <= 3 {
						return &f
					}
				}
				return nil
			}
			w.start(Options{}, func(context.Context, *sluice.Record) error { return nil })
			pass(5 * time.Minute)
			w.end()
			w.expectLeft("jobs")
			if len(w.calls()) != 5 {
				t.Errorf("%s: %d calls of the handler for 5 messages", name, len(w.calls()))
			}
			w.expectEnds(map[End]int{EndSettled: 5})
		})
	}
}

// Without the permission to delete, a consumer must not handle everything again
// and again.
func TestDeletesThatAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range 30 {
			w.stub.send("jobs", body(i))
		}
		w.stub.fault = func(call, _ string) *fault {
			if call == "DeleteMessageBatch" {
				return &fault{code: "AccessDenied", status: 403}
			}
			return nil
		}
		w.start(Options{Concurrency: 10}, func(context.Context, *sluice.Record) error { return nil })
		pass(30 * time.Minute)
		if n := len(w.calls()); n != 10 {
			t.Errorf("%d calls of the handler, want 10", n)
		}
		if h := w.c.NotReady(); len(h) != 2 || !strings.Contains(strings.Join(h, " "), "DeleteMessageBatch fails since") || !strings.Contains(h[1], "10 of at most 10 messages are in hand") {
			t.Errorf("health %q", h)
		}
		if !strings.Contains(w.logged(), "lack the permission sqs:DeleteMessageBatch") {
			t.Errorf("log:\n%s", w.logged())
		}
		w.stub.mu.Lock()
		w.stub.fault = nil
		w.stub.mu.Unlock()
		pass(time.Hour)
		w.end()
		w.expectLeft("jobs")
		if n := len(w.calls()); n != 30 {
			t.Errorf("%d calls of the handler for 30 messages", n)
		}
	})
}

func TestReceivesThatFail(t *testing.T) {
	for name, f := range map[string]fault{
		"throttled": {code: "ThrottlingException"}, "unavailable": {code: "ServiceUnavailable", status: 503}, "lost": {lost: true},
		"refused": {code: "AccessDenied", status: 403}, "expired": {code: "ExpiredToken", status: 403}, "deleted": {code: "QueueDoesNotExist"},
		"too much in flight": {code: "OverLimit", status: 403},
	} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			w.start(Options{}, func(context.Context, *sluice.Record) error { return nil })
			pass(time.Second)
			w.stub.mu.Lock()
			w.stub.fault = func(string, string) *fault { return &f }
			w.stub.mu.Unlock()
			before := w.stub.count("ReceiveMessage")
			w.stub.send("jobs", body(1)) // ends the long poll
			pass(time.Minute)
			w.stub.send("jobs", body(2))
			pass(9 * time.Minute)
			if h := w.c.NotReady(); len(h) == 0 || !strings.Contains(strings.Join(h, " "), "queue jobs: ReceiveMessage fails since") {
				t.Errorf("%s: health %q", name, h)
			}
			if n := w.stub.count("ReceiveMessage") - before; n > 60 {
				t.Errorf("%s: %d calls in 10 minutes", name, n)
			}
			w.stub.mu.Lock()
			w.stub.fault = nil
			w.stub.mu.Unlock()
			pass(5 * time.Minute)
			if h := w.c.NotReady(); len(h) > 0 {
				t.Errorf("%s: health %q", name, h)
			}
			w.end()
			w.expectLeft("jobs")
		})
	}
}

// An extension that is slow must not undo the delay of a message that has
// failed meanwhile.
func TestExtensionDoesNotUndoADelay(t *testing.T) {
	for fails, slow := range map[time.Duration]int{5500 * time.Millisecond: 2, 6500 * time.Millisecond: 1} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			w.stub.send("jobs", body(1))
			n := 0
			w.stub.fault = func(call, _ string) *fault {
				if call == "ChangeMessageVisibilityBatch" {
					if n++; n == slow {
						return &fault{delay: 3 * time.Second}
					}
					return &fault{delay: time.Second}
				}
				return nil
			}
			w.start(Options{Visibility: 12 * time.Second}, func(context.Context, *sluice.Record) error { // extended after 6 s
				time.Sleep(fails)
				return sluice.RetryAfter(time.Hour, errDown)
			})
			pass(50 * time.Minute)
			w.end()
			if len(w.calls()) != 1 {
				t.Errorf("%d calls within an hour", len(w.calls()))
			}
		})
	}
}
