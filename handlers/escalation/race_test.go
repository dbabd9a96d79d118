package escalation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// Two find a lease that is over: one takes the step over, the other leaves it
// to that one, or finds it done.
func TestTwoTakeOver(t *testing.T) {
	for _, tt := range []struct {
		name string
		took time.Duration
		want string
	}{
		{"while the first still calls", 20 * time.Second, "retry: step KEY: retry after 2m0s: it is being tried, or its process died"},
		{"when the first is done", 0, "skipped: attempted before"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRota(t)
				w.put(t, "rings", `{"page":{"S":"P1"},"n":{"N":"0"},"tried":{"M":{"person":{"S":"ann"},"rank":{"N":"1"}}},"leaseOwner":{"S":"x"},"leaseUntil":{"S":"2024-05-01T10:00:00Z"}}`)
				var calls atomic.Int32
				w.contact = func(context.Context, Try) error {
					calls.Add(1)
					time.Sleep(tt.took)
					return nil
				}
				first := make(chan error, 1)
				c := w.config()
				began := false
				c.Config.Write = func(ctx context.Context, op dynamo.Op) error {
					if op.Kind == dynamo.UpdateOp && !began {
						began = true
						go func() { first <- w.consumer(t).Try(ctx, ring()) }()
						synctest.Wait()
					}
					return w.Write(ctx, op)
				}
				second, err := NewConsumer(c)
				if err != nil {
					t.Fatal(err)
				}
				if err := second.Try(t.Context(), ring()); outcome(err) != tt.want {
					t.Errorf("second: %v", err)
				}
				if err := <-first; err != nil || calls.Load() != 1 {
					t.Errorf("first: %v, %d calls", err, calls.Load())
				}
			})
		})
	}
}

// A process whose lease is over finds that another process has the step. It changes
// nothing, and does not delete the message: the other process needs the message after a
// crash.
func TestComesBackTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRota(t)
		var calls atomic.Int32
		w.contact = func(context.Context, Try) error {
			if calls.Add(1) == 1 {
				time.Sleep(2*time.Minute + time.Second)
				return nil
			}
			time.Sleep(20 * time.Second)
			return sluice.Permanent(errors.New("no such number"))
		}
		first := make(chan error, 1)
		go func() { first <- w.consumer(t).Try(t.Context(), ring()) }()
		time.Sleep(2 * time.Minute)
		if err := w.consumer(t).Try(t.Context(), ring()); err != nil {
			t.Error(err)
		}
		if err := <-first; outcome(err) != "retry: step KEY: retry after 1m59s: it is being tried, or its process died" {
			t.Error(err)
		}
		if it := w.Items("rings"); len(it) != 1 || !it[0].Equal(parse(`{"page":{"S":"P1"},"n":{"N":"0"},"tried":{"M":{"person":{"S":"ann"},"rank":{"N":"1"}}},"at":{"S":"2024-05-01T10:02:20Z"},"outcome":{"S":"failed"}}`)) {
			t.Errorf("attempt %s", w.rings())
		}
	})
}

// A process whose lease is over is done if another made the attempt, or if the attempt
// was deleted.
func TestComesBackToNothing(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, w *rota){
		"made": func(t *testing.T, w *rota) { w.put(t, "rings", fmt.Sprintf(made, "failed")) },
		"deleted": func(t *testing.T, w *rota) {
			w.Write(t.Context(), dynamo.Delete("rings", item.Of(item.String("page", "P1"), item.Number("n", "0"))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRota(t)
				var want string
				w.contact = func(context.Context, Try) error {
					change(t, w)
					want = w.rings()
					return nil
				}
				if err := w.consumer(t).Try(t.Context(), ring()); outcome(err) != "skipped: lease lost" || w.rings() != want {
					t.Errorf("%v, attempt %s", err, w.rings())
				}
			})
		})
	}
}

// However long claiming takes, a call ends as long before its lease as clocks may
// differ: Lease less Timeout.
func TestSlowClaim(t *testing.T) {
	for _, tt := range []struct {
		claiming time.Duration
		called   bool
	}{{10 * time.Second, true}, {16 * time.Second, false}} {
		synctest.Test(t, func(t *testing.T) {
			w := newRota(t)
			ended := time.Duration(0)
			w.contact = func(ctx context.Context, _ Try) error {
				<-ctx.Done()
				ended = w.Now().Sub(start)
				return ctx.Err()
			}
			c := w.config()
			c.Lease, c.Timeout = 32*time.Second, 30*time.Second
			c.Config.Write = func(ctx context.Context, op dynamo.Op) error {
				if op.Kind == dynamo.PutOp {
					time.Sleep(tt.claiming)
				}
				return w.Write(ctx, op)
			}
			s, err := NewConsumer(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Try(t.Context(), ring()); !strings.HasPrefix(outcome(err), "retry: ") || (ended > 0) != tt.called || ended > 30*time.Second {
				t.Errorf("claimed in %v: %v, ended at %v", tt.claiming, err, ended)
			}
		})
	}
}

// A call cut off by the route's timeout counts like a call cut off by Timeout: the next
// step must have its turn.
func TestLimitOfTheRoute(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cause error
		want  string
	}{
		{"of the route", nil, `"failed"`},
		{"of the process", errors.New("stopped ahead of the deadline"), `"leaseUntil"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRota(t)
				w.contact = func(ctx context.Context, _ Try) error {
					<-ctx.Done()
					return ctx.Err()
				}
				ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, tt.cause)
				defer cancel()
				late := ring("2024-05-01T10:00:00Z", "2024-05-01T09:50:00Z")
				if err := w.consumer(t).Try(ctx, late); (err == nil) != (tt.cause == nil) || !strings.Contains(w.rings(), tt.want) {
					t.Errorf("%v, attempt %s", err, w.rings())
				}
			})
		})
	}
}

// A process that stops releases the step.
func TestReleasedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRota(t)
		ctx, stop := context.WithCancel(t.Context())
		w.contact = func(ctx context.Context, _ Try) error {
			stop()
			return ctx.Err()
		}
		c := w.config()
		var told []string
		c.Called = func(try Try, outcome string, err error) {
			told = append(told, fmt.Sprint(try.DedupeKey, " ", outcome, " ", err))
		}
		c.Config.Write = func(ctx context.Context, op dynamo.Op) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return w.Write(ctx, op)
		}
		s, err := NewConsumer(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Try(ctx, ring()); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		w.contact = nil
		if err := s.Try(t.Context(), ring()); err != nil { // it does not wait for the lease
			t.Error(err)
		}
		if want := "[P1#0  context canceled P1#0 contacted <nil>]"; fmt.Sprint(told) != want {
			t.Errorf("told %q, want %s", told, want)
		}
	})
}

// A process that stops during a call writes the attempt. It does not count its own stop
// as a failure of the provider.
func TestEndsDuringACall(t *testing.T) {
	for _, tt := range []struct {
		name  string
		calls error
		want  string
	}{
		{"contacted", nil, `"contacted"`},
		{"refused for good", sluice.Permanent(errors.New("no such number")), `"failed"`},
		{"cut off", context.Canceled, `"leaseUntil"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRota(t)
				ctx, stop := context.WithCancel(t.Context())
				w.contact = func(context.Context, Try) error {
					stop()
					return tt.calls
				}
				c := w.config()
				c.Config.Write = func(ctx context.Context, op dynamo.Op) error {
					if ctx.Err() != nil {
						return ctx.Err()
					}
					return w.Write(ctx, op)
				}
				s, err := NewConsumer(c)
				if err != nil {
					t.Fatal(err)
				}
				late := ring("2024-05-01T10:00:00Z", "2024-05-01T09:30:00Z") // it would be given up
				if err := s.Try(ctx, late); (err == nil) != (tt.calls != context.Canceled) || !strings.Contains(w.rings(), tt.want) {
					t.Errorf("%v, attempt %s", err, w.rings())
				}
			})
		})
	}
}
