package escalation

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/outcomes"
	"github.com/sluicehq/sluice/item"
)

// ring is the message of ann's step.
func ring(body ...string) *sluice.Record {
	b := `{"page":"P1","person":"ann","rank":1,"n":0,"from":"2024-05-01T10:00:00Z"}`
	b = strings.NewReplacer(body...).Replace(b)
	m := sluice.Message{ID: "m1", Body: b}
	return m.Record("arn:aws:sqs:eu-west-1:123456789012:rings")
}

const made = `{"page":{"S":"P1"},"n":{"N":"0"},"tried":{"M":{"person":{"S":"ann"},"rank":{"N":"1"}}},"at":{"S":"2024-05-01T10:00:00Z"},"outcome":{"S":"%s"}}`

func TestTry(t *testing.T) {
	outage := errors.New("busy")
	leased := func(until string) string {
		return `{"page":{"S":"P1"},"n":{"N":"0"},"tried":{"M":{"person":{"S":"ann"},"rank":{"N":"1"}}},"leaseOwner":{"S":"x"},"leaseUntil":{"S":"` + until + `"}}`
	}
	for _, tt := range []struct {
		name    string
		change  func(t *testing.T, w *rota)
		contact func(ctx context.Context, t Try) error
		rec     *sluice.Record
		calls   int
		rings   string
		err     string
	}{
		{name: "contacted", calls: 1, rings: fmt.Sprintf(made, "contacted")},
		{name: "refused for good", contact: func(context.Context, Try) error { return sluice.Permanent(outage) }, calls: 1, rings: fmt.Sprintf(made, "failed")},
		{name: "passed over", contact: func(context.Context, Try) error { return sluice.Skip("asleep") }, calls: 1, rings: fmt.Sprintf(made, "skipped")},
		{name: "step gone", change: func(t *testing.T, w *rota) {
			w.Write(t.Context(), dynamo.Delete("people", item.Of(item.String("team", "T1"), item.String("person", "ann"))))
		}, rings: fmt.Sprintf(made, "skipped")},
		{name: "step disabled", change: func(t *testing.T, w *rota) {
			w.put(t, "people", strings.Replace(inTeam("ann", 1, 0), "true", "false", 1))
		},
			rings: fmt.Sprintf(made, "skipped")},
		{name: "step bad", change: func(t *testing.T, w *rota) {
			w.put(t, "people", strings.Replace(inTeam("ann", 1, 7), `"7"`, `"30.5"`, 1))
		}, rings: fmt.Sprintf(made, "skipped")},
		{name: "step moved", change: func(t *testing.T, w *rota) { w.put(t, "people", inTeam("ann", 9, 0)) }, calls: 1, rings: fmt.Sprintf(made, "contacted")},
		{name: "not admitted", change: func(t *testing.T, w *rota) {
			w.put(t, "pages", strings.Replace(ringing, "T1", "T2", 1))
		}, rings: fmt.Sprintf(made, "skipped")},

		{name: "answered", change: func(t *testing.T, w *rota) { w.put(t, "pages", strings.Replace(ringing, "ringing", "answered", 1)) }, err: "skipped: escalation not active"},
		{name: "no page", rec: ring("P1", "P2"), err: "skipped: escalation not found"},
		{name: "attempted before", change: func(t *testing.T, w *rota) { w.put(t, "rings", fmt.Sprintf(made, "contacted")) },
			rings: fmt.Sprintf(made, "contacted"), err: "skipped: attempted before"},
		{name: "being tried", change: func(t *testing.T, w *rota) { w.put(t, "rings", leased("2024-05-01T10:00:07Z")) },
			rings: leased("2024-05-01T10:00:07Z"), err: "retry: step KEY: retry after 7s: it is being tried, or its process died"},
		{name: "its process died", change: func(t *testing.T, w *rota) { w.put(t, "rings", leased("2024-05-01T10:00:00Z")) }, calls: 1, rings: fmt.Sprintf(made, "contacted")},
		{name: "no lease", change: func(t *testing.T, w *rota) {
			w.put(t, "rings", `{"page":{"S":"P1"},"n":{"N":"0"},"tried":{"M":{"person":{"S":"ann"},"rank":{"N":"1"}}}}`)
		}, calls: 1, rings: fmt.Sprintf(made, "contacted")},
		{name: "bad lease", change: func(t *testing.T, w *rota) { w.put(t, "rings", leased("soon")) }, rings: leased("soon"), err: "permanent: step KEY: its attempt: attribute \"leaseUntil\" is no time"},

		{name: "busy", contact: func(context.Context, Try) error { return outage }, calls: 1, err: "retry: step KEY: contacting: busy"},
		{name: "busy for a minute", contact: func(context.Context, Try) error { return sluice.RetryAfter(time.Minute, outage) }, calls: 1,
			err: "retry: retry after 1m0s: step KEY: contacting: busy"},
		{name: "its Remaining is not ours", contact: func(context.Context, Try) error {
			return &sluice.Remaining{Rest: func(context.Context, *sluice.Record) error { return nil }, Err: outage}
		}, calls: 1, err: "retry: step KEY: contacting: busy"},
		{name: "busy for too long", rec: ring("2024-05-01T10:00:00Z", "2024-05-01T09:50:00Z"), contact: func(context.Context, Try) error { return outage }, calls: 1,
			rings: fmt.Sprintf(made, "failed")},
		{name: "not yet too long", rec: ring("2024-05-01T10:00:00Z", "2024-05-01T09:50:01Z"), contact: func(context.Context, Try) error { return outage }, calls: 1,
			err: "retry: step KEY: contacting: busy"},

		{name: "busy beyond the limit", contact: func(context.Context, Try) error { return sluice.RetryAfter(10*time.Minute, outage) }, calls: 1,
			rings: fmt.Sprintf(made, "failed")},
		{name: "panics", contact: func(context.Context, Try) error { panic("no such number") }, err: "retry: step KEY: contacting: panic: no such number"},
		{name: "panics for too long", rec: ring("2024-05-01T10:00:00Z", "2024-05-01T09:50:00Z"), contact: func(context.Context, Try) error { panic("no such number") },
			rings: fmt.Sprintf(made, "failed")},
		{name: "ends its goroutine for too long", rec: ring("2024-05-01T10:00:00Z", "2024-05-01T09:50:00Z"), contact: func(context.Context, Try) error { runtime.Goexit(); return nil },
			rings: fmt.Sprintf(made, "failed")},

		{name: "bad message", rec: ring(`"n":0`, `"n":"0"`), err: `permanent: message of a step: attribute "n" is of type S, want N`},
		{name: "not due", rec: ring("10:00:00", "10:20:00"), err: "skipped: not due yet"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRota(t)
				if tt.change != nil {
					tt.change(t, w)
				}
				if tt.rec == nil {
					tt.rec = ring()
				}
				w.contact = tt.contact
				c := w.consumer(t)
				err := c.Try(t.Context(), tt.rec)
				if got := outcome(err); !strings.HasPrefix(got, tt.err) || tt.err == "" && got != "" {
					t.Errorf("outcome %q, want %q", got, tt.err)
				}
				if len(w.calls) != tt.calls {
					t.Errorf("%d calls, want %d", len(w.calls), tt.calls)
				}
				if tt.rings == "" && strings.HasPrefix(tt.err, "retry:") { // the lease is over at once
					if !strings.Contains(w.rings(), `"leaseUntil":{"S":"2024-05-01T10:00:00Z"}`) || strings.Contains(w.rings(), `"at"`) {
						t.Errorf("attempt %s", w.rings())
					}
					w.contact = nil
					if err := c.Try(t.Context(), tt.rec); err != nil || !parse(w.rings()).Equal(parse(fmt.Sprintf(made, "contacted"))) {
						t.Errorf("again: %v, %s", err, w.rings())
					}
					return
				}
				if tt.rings == "" && w.rings() != "" || tt.rings != "" && !parse(w.rings()).Equal(parse(tt.rings)) {
					t.Errorf("attempt %s, want %s", w.rings(), tt.rings)
				}
				if tt.err == "" { // delivered again, nothing is left to do
					if err := c.Try(t.Context(), tt.rec); outcome(err) != "skipped: attempted before" || len(w.calls) != tt.calls {
						t.Errorf("again: %v, %d calls", err, len(w.calls))
					}
				}
			})
		})
	}
}

// While one tries, another that gets the message leaves it in the queue. One
// that tries for too long is stopped, and has lost the step when it comes back.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRota(t)
		var running, calls atomic.Int32
		var stubborn atomic.Bool
		stubborn.Store(true)
		w.contact = func(ctx context.Context, _ Try) error {
			calls.Add(1)
			if running.Add(1) > 1 && !stubborn.Load() {
				t.Error("two calls at once")
			}
			if calls.Load() == 1 {
				<-ctx.Done()
				if at := w.Now().Sub(start); at != 30*time.Second {
					t.Errorf("stopped after %v", at)
				}
				time.Sleep(3 * time.Minute) // it does not obey: nothing can be done
			} else {
				time.Sleep(20 * time.Second)
			}
			running.Add(-1)
			return ctx.Err()
		}
		first := make(chan error, 1)
		go func() { first <- w.consumer(t).Try(t.Context(), ring()) }()
		synctest.Wait()
		second := w.consumer(t)
		err := second.Try(t.Context(), ring())
		var retry *outcomes.Retry
		if !errors.As(err, &retry) || retry.After != 2*time.Minute || calls.Load() != 1 {
			t.Fatalf("%v; %d calls", err, calls.Load())
		}
		time.Sleep(retry.After)
		third := make(chan error, 1)
		go func() { third <- w.consumer(t).Try(t.Context(), ring()) }()
		synctest.Wait()
		stubborn.Store(false)
		if err := second.Try(t.Context(), ring()); !errors.As(err, &retry) || retry.After != 2*time.Minute || calls.Load() != 2 {
			t.Fatalf("after a take-over: %v; %d calls", err, calls.Load())
		}
		if err := <-third; err != nil {
			t.Error(err)
		}
		if err := <-first; outcome(err) != "retry: step KEY: contacting: context deadline exceeded" {
			t.Errorf("the first: %v", err) // its release has changed nothing
		}
		if calls.Load() != 2 || !strings.Contains(w.rings(), `"outcome":{"S":"contacted"}`) {
			t.Errorf("%d calls, %s", calls.Load(), w.rings())
		}
	})
}

// An outcome that cannot be written at once is written later, with the time of
// the attempt, and without another call.
func TestOutcomeIsWrittenAgain(t *testing.T) {
	for name, taken := range map[string]bool{"refused": false, "the answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRota(t)
				w.contact = func(context.Context, Try) error {
					fails := 3
					w.Fault = func(after bool, _ []dynamo.Op) error {
						if after != taken || fails == 0 {
							return nil
						}
						fails--
						return errors.New("throttled")
					}
					return nil
				}
				err := w.consumer(t).Try(t.Context(), ring())
				if want := map[bool]string{false: "", true: "skipped: lease lost"}[taken]; outcome(err) != want {
					t.Errorf("%v, want %q", err, want)
				}
				if len(w.calls) != 1 || !parse(w.rings()).Equal(parse(fmt.Sprintf(made, "contacted"))) {
					t.Errorf("calls %q, attempt %s", w.calls, w.rings())
				}
			})
		})
	}
}

// An outcome that cannot be written at all is not known: the step is tried
// again, with the same key, when the lease is over.
func TestOutcomeIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRota(t)
		down := errors.New("throttled")
		writes := 0
		w.contact = func(context.Context, Try) error {
			w.Fault = func(bool, []dynamo.Op) error { writes++; return down }
			return nil
		}
		c := w.consumer(t)
		if err := c.Try(t.Context(), ring()); !errors.Is(err, down) || sluice.IsPermanent(err) || writes != 5 {
			t.Fatal(err, writes)
		}
		took := w.Now().Sub(start)
		w.contact, w.Fault = nil, nil
		err := c.Try(t.Context(), ring())
		retry, ok := errors.AsType[*outcomes.Retry](err)
		if !ok || retry.After != 2*time.Minute-took || took > 30*time.Second || len(w.calls) != 1 {
			t.Fatal(err, took)
		}
		time.Sleep(retry.After)
		if err := c.Try(t.Context(), ring()); err != nil || len(w.calls) != 2 || len(w.Items("rings")) != 1 || !strings.Contains(w.rings(), `"contacted"`) {
			t.Errorf("%v, %q, %s", err, w.calls, w.rings())
		}
	})
}

func TestExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRota(t)
		c := w.consumer(t)
		if err := c.Expire(t.Context(), ring("10:00:00", "10:00:01")); outcome(err) != "skipped: not due yet" || len(w.sent()) != 1 || w.sent()[0].Delay != time.Second {
			t.Errorf("%v, sent %v", err, w.sent())
		}
		time.Sleep(time.Second)
		for _, want := range []string{"", "skipped: escalation not active"} {
			if err := c.Expire(t.Context(), ring("10:00:00", "10:00:01")); outcome(err) != want || w.state() != "no_response" {
				t.Errorf("%v, want %q; %s", err, want, w.state())
			}
		}
		if err := c.Expire(t.Context(), ring("P1", "P2")); outcome(err) != "skipped: escalation not found" {
			t.Error(err)
		}
		if err := c.Expire(t.Context(), ring(`"page"`, `"site"`)); !sluice.IsPermanent(err) {
			t.Error(err)
		}
	})
}

func TestNewConsumerNamesWhatIsWrong(t *testing.T) {
	_, err := NewConsumer(ConsumerConfig{Lease: time.Second, Timeout: -1, GiveUpAfter: -1})
	for _, want := range []string{
		"escalation: Escalation.ID is missing", "Message.StepID is missing", "AttemptKey is missing",
		"NewAttempt is missing", "Contact is missing", "Timeout is -1ns", "GiveUpAfter is -1ns",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want it to contain %q", err, want)
		}
	}
	c := newConfig(t)
	c.Lease, c.Timeout = time.Minute, time.Minute
	if _, err := NewConsumer(c); err == nil || !strings.Contains(err.Error(), "Lease is 1m0s, want more than Timeout, 1m0s") {
		t.Error(err)
	}
	c = newConfig(t)
	c.NewAttempt = func(Try) sluice.Item { return item.Of(item.String("page", "P1")) }
	s, err := NewConsumer(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Try(t.Context(), ring()); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), `key attributes ["page" "n"]`) {
		t.Error(err)
	}
}

func newConfig(t *testing.T) ConsumerConfig { return newRota(t).config() }
