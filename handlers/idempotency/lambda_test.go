package idempotency

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/lambda"
)

// mapping is an event source mapping of a stream, by AWS's rules. It retries a failed
// batch retries times (-1: without end), or until it is older than maxAge, then
// discards it. AWS promises no pause between tries: here is none. A function stops at
// its timeout.
type mapping struct {
	timeout, maxAge time.Duration
	retries         int
}

// outcome is the final state of a record.
type outcome struct {
	handled     bool
	invocations int
	after       time.Duration // its birth
}

// deliver delivers one record to invoke, which reports whether it succeeded.
func (m mapping) deliver(invoke func(ctx context.Context) bool) outcome {
	born := time.Now()
	for n := 1; ; n++ {
		ctx, cancel := context.WithTimeout(context.Background(), m.timeout)
		ok := invoke(ctx)
		cancel()
		age := time.Since(born)
		if ok || m.retries >= 0 && n > m.retries || age > m.maxAge {
			return outcome{ok, n, age}
		}
	}
}

// process is a sandbox of the function. It is killed in its handler at a time
// after its start, if that is above 0.
type process struct {
	tb     *table
	killAt time.Duration
	took   time.Duration // by the handler
	limit  time.Duration // of the route; 0 is none
	calls  *atomic.Int64
}

func (p *process) invoke(ctx context.Context) bool {
	start := time.Now()
	var killed atomic.Bool
	write := func(ctx context.Context, op dynamo.Op) error {
		if killed.Load() {
			return errDown // nothing is heard of it any more
		}
		return p.tb.Write(ctx, op)
	}
	r := router.New()
	once := Once("mail", Options{Table: "idem", Write: write})
	r.Handle("thing#INSERT", func(ctx context.Context, rec *sluice.Record) error {
		if p.killAt > 0 {
			time.Sleep(time.Until(start.Add(p.killAt)))
			killed.Store(true)
			return errDown
		}
		select {
		case <-time.After(p.took):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		p.calls.Add(1)
		return nil
	}, append([]router.Option{router.Use(once)}, p.limits()...)...)
	answer, err := lambda.NewHandler(r, lambda.Options{}).Invoke(ctx, []byte(`{"Records":[{"eventID":"e-1","eventName":"INSERT","eventVersion":"1.1",
		"eventSource":"aws:dynamodb","awsRegion":"us-east-1","eventSourceARN":"arn:aws:dynamodb:us-east-1:1:table/test/stream/2016-12-01T00:00:00.000",
		"dynamodb":{"ApproximateCreationDateTime":946684800,"Keys":{"pk":{"S":"a"}},"NewImage":{"pk":{"S":"a"},"entityType":{"S":"thing"}},
		"SequenceNumber":"100000000000000000001","SizeBytes":9,"StreamViewType":"NEW_IMAGE"}}]}`))
	return err == nil && !killed.Load() && string(answer) == `{"batchItemFailures":[]}`
}

func (p *process) limits() []router.Option {
	if p.limit == 0 {
		return nil
	}
	return []router.Option{router.Timeout(p.limit)}
}

// The claim of a function that died ends before Lambda gives the record up: the
// next invocation waits for its end, and so at most two tries go by. Without that
// all tries are used up in a moment, and the record is discarded.
func TestClaimOfADeadFunction(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name        string
		mapping     mapping
		killAt      time.Duration // of the first invocation
		took        time.Duration
		limit       time.Duration // of the route
		invocations int
		after       time.Duration // the first start, at most
		lost        bool
	}{
		{"dies at once, default limits", mapping{time.Minute, day, -1}, time.Second, 2 * time.Second, 0, 3, 65 * time.Second, false},
		{"the template's limits", mapping{time.Minute, 20 * time.Hour, 10}, time.Second, 2 * time.Second, 0, 3, 65 * time.Second, false},
		{"two retries", mapping{time.Minute, day, 2}, time.Second, 2 * time.Second, 0, 3, 65 * time.Second, false},
		{"dies in the middle", mapping{time.Minute, day, 1}, 30 * time.Second, 2 * time.Second, 0, 2, 65 * time.Second, false},
		{"is killed at its timeout", mapping{time.Minute, day, 1}, time.Minute, 2 * time.Second, 0, 2, 65 * time.Second, false},
		{"the least age that a mapping takes", mapping{time.Minute, time.Minute, 2}, time.Second, 2 * time.Second, 0, 3, 65 * time.Second, false},
		{"a short timeout", mapping{3 * time.Second, day, 2}, 10 * time.Millisecond, 100 * time.Millisecond, 0, 3, 4 * time.Second, false},
		{"the longest timeout", mapping{15 * time.Minute, day, 2}, time.Second, time.Minute, 0, 3, 17 * time.Minute, false},
		{"one retry is too few", mapping{time.Minute, day, 1}, time.Second, 2 * time.Second, 0, 2, 65 * time.Second, true},
		{"a route's timeout", mapping{time.Minute, day, 2}, time.Second, 2 * time.Second, 20 * time.Second, 3, 25 * time.Second, false},
		{"a handler that takes most of the time", mapping{time.Minute, day, 2}, 10 * time.Second, 50 * time.Second, 0, 3, 2 * time.Minute, false},
	} {
		for _, wait := range []bool{true, false} {
			t.Setenv("AWS_LAMBDA_RUNTIME_API", map[bool]string{true: "127.0.0.1:9001"}[wait])
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int64
				tb := newTable()
				if !wait && tt.mapping.retries < 0 {
					return // it is tried again for a day, a million times a minute
				}
				first := true
				got := tt.mapping.deliver(func(ctx context.Context) bool {
					p := process{tb: tb, took: tt.took, limit: tt.limit, calls: &calls}
					if first {
						p.killAt, first = tt.killAt, false
					}
					return p.invoke(ctx)
				})
				if !wait {
					if early := tt.killAt < tt.mapping.timeout; got.handled == early {
						t.Errorf("%s, without waiting: %+v", tt.name, got)
					}
					return
				}
				if tt.lost {
					if got.handled {
						t.Errorf("%s: %+v: the documentation asks for more than is needed", tt.name, got)
					}
					return
				}
				if !got.handled || calls.Load() != 1 || got.invocations > tt.invocations || got.after > tt.after {
					t.Errorf("%s: %+v, %d calls, want %d invocations and %v at most", tt.name, got, calls.Load(), tt.invocations, tt.after)
				}
				if status := str(tb.rows["mail#test#e-1"], "status"); status != "COMPLETED" {
					t.Errorf("%s: the row says %s", tt.name, status)
				}
			})
		}
	}
}

// A record that waits is given back when its invocation ends, and not when its
// context was none of Lambda's.
func TestWaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb, h := newTable(), &handler{}
		long, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		dead := &handler{do: func(context.Context) error {
			tb.fail = func(dynamo.Op) (error, error) { return errDown, nil }
			return nil
		}}
		tb.wrap(dead)(long, event())
		tb.fail = nil
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		err := tb.wrap(h, func(o *Options) { o.Wait = true })(ctx, event())
		if err == nil || !strings.Contains(err.Error(), "is claimed until 2000-01-01T01:00:00Z") || fmt.Sprint(time.Since(begin)) != "1m0s" || h.calls != 0 {
			t.Errorf("%v after %v, %d calls", err, time.Since(begin), h.calls)
		}
	})
}
