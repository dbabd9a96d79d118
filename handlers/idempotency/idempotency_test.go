package idempotency

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/internal/outcomes"
)

func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb, h := newTable(), &handler{}
		handle := tb.wrap(h)
		if err := handle(t.Context(), event()); err != nil || tb.ops() != "claim done" {
			t.Fatal(err)
		}
		for _, after := range []time.Duration{0, time.Hour, 72*time.Hour - time.Second} {
			time.Sleep(time.Until(begin.Add(after)))
			err := handle(t.Context(), event())
			if skip := (*sluice.SkipError)(nil); !errors.As(err, &skip) || skip.Reason != "already done" || h.calls != 1 {
				t.Errorf("after %v: %v, %d calls", after, err, h.calls)
			}
		}
		// Another route, and another event, have rows of their own.
		other := event()
		other.EventID = "e-2"
		if err := handle(t.Context(), other); err != nil || h.calls != 2 {
			t.Errorf("%v, %d calls", err, h.calls)
		}
		if err := Once("push", Options{Table: "idem", Write: tb.Write})(h.handle)(t.Context(), event()); err != nil || h.calls != 3 {
			t.Errorf("%v, %d calls", err, h.calls)
		}
		// An expired row is none, even if it is still there.
		time.Sleep(time.Hour)
		if err := handle(t.Context(), event()); err != nil || h.calls != 4 {
			t.Errorf("%v, %d calls", err, h.calls)
		}
	})
}

func TestFailuresGiveTheClaimUp(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"a plain error", func(context.Context) error { return errDown }},
		{"a permanent error", func(context.Context) error { return sluice.Permanent(errDown) }},
		{"later", func(context.Context) error { return sluice.RetryAfter(time.Hour, errDown) }},
		{"the same again", func(context.Context) error { return &sluice.Remaining{Err: errDown} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tb, h := newTable(), &handler{do: tt.do}
			ctx, cancel := context.WithCancel(t.Context())
			h.do = func(ctx context.Context) error {
				cancel() // it is over, and the claim is given up all the same
				return tt.do(ctx)
			}
			want := tt.do(ctx)
			if err := tb.wrap(h)(ctx, event()); err == nil || err.Error() != want.Error() || !errors.Is(err, errDown) || sluice.IsPermanent(err) != sluice.IsPermanent(want) {
				t.Errorf("%v, want %v", err, want)
			}
			if got := tb.ops(); got != "claim release" || len(tb.rows) != 0 {
				t.Errorf("%s, %v", got, tb.rows)
			}
			h.do = nil
			if err := tb.wrap(h)(t.Context(), event()); err != nil || h.calls != 2 {
				t.Errorf("%v, %d calls", err, h.calls)
			}
		})
	}
}

func TestSkipIsDone(t *testing.T) {
	tb, h := newTable(), &handler{do: func(context.Context) error { return fmt.Errorf("today: %w", sluice.Skip("sunday")) }}
	if err := tb.wrap(h)(t.Context(), event()); !sluice.IsSkip(err) || err.Error() != "today: skipped: sunday" {
		t.Error(err)
	}
	if err := tb.wrap(h)(t.Context(), event()); err.Error() != "skipped: already done" || h.calls != 1 {
		t.Errorf("%v, %d calls", err, h.calls)
	}
}

func TestPanicsGiveTheClaimUp(t *testing.T) {
	for name, end := range map[string]func(context.Context) error{
		"panic":  func(context.Context) error { panic("boom") },
		"goexit": func(context.Context) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			tb, h := newTable(), &handler{do: end}
			ended := make(chan any)
			go func() {
				defer close(ended)
				defer func() {
					if p := recover(); p != nil {
						ended <- p
					}
				}()
				tb.wrap(h)(context.Background(), event())
			}()
			if p := <-ended; name == "panic" && p != "boom" {
				t.Errorf("panicked with %v", p)
			}
			if got := tb.ops(); got != "claim release" || len(tb.rows) != 0 {
				t.Errorf("%s, %v", got, tb.rows)
			}
		})
	}
}

// A dead process holds its claim until its deadline; then another process takes over.
// Until then others get RetryAfter.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb, h := newTable(), &handler{}
		dead := &handler{do: func(ctx context.Context) error {
			tb.fail = func(dynamo.Op) (error, error) { return errDown, nil } // nothing is heard of it any more
			return nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		tb.wrap(dead)(ctx, event())
		tb.fail = nil

		time.Sleep(5 * time.Second)
		err := tb.wrap(h)(t.Context(), event())
		retry, claimed := (*outcomes.Retry)(nil), (*inProgressError)(nil)
		if !errors.As(err, &retry) || retry.After != 15*time.Second+time.Millisecond || !errors.As(err, &claimed) || !claimed.Until.Equal(begin.Add(20*time.Second)) || h.calls != 0 {
			t.Fatalf("%v, %d calls", err, h.calls)
		}
		if want := "retry after 15.001s: idempotency: mail#test#e-1 is claimed until 2000-01-01T00:00:20Z by another that handles it"; err.Error() != want {
			t.Error(err)
		}
		time.Sleep(15 * time.Second) // to the moment: it is not over yet
		if err = tb.wrap(h)(t.Context(), event()); !errors.As(err, &retry) || retry.After != 100*time.Millisecond {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		if err := tb.wrap(h)(t.Context(), event()); err != nil || h.calls != 1 {
			t.Errorf("%v, %d calls", err, h.calls)
		}
	})
}

// A claim ends with the handler's deadline, near or far.
func TestClaimsEndWithTheDeadline(t *testing.T) {
	for _, d := range []time.Duration{time.Second, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			tb := newTable()
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			h := &handler{do: func(ctx context.Context) error {
				end, _ := ctx.Deadline()
				if until := num(tb.rows["mail#test#e-1"], "in_progress_expiration"); until != begin.Add(d).UnixMilli() || !end.Equal(begin.Add(d)) {
					t.Errorf("claimed until %d, deadline %v", until, end)
				}
				return nil
			}}
			if err := tb.wrap(h)(ctx, event()); err != nil || h.calls != 1 {
				t.Error(err)
			}
		})
	}
}

// A claim holds until its end, also with a shorter TTL: no process takes over from a
// running handler.
func TestTTLShorterThanAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable()
		short := func(o *Options) { o.TTL = 2 * time.Second }
		other := &handler{}
		h := &handler{do: func(context.Context) error {
			for range 29 {
				time.Sleep(time.Second)
				claimed := (*inProgressError)(nil)
				if err := tb.wrap(other, short)(t.Context(), event()); !errors.As(err, &claimed) || other.calls != 0 {
					t.Fatalf("after %v: %v, %d calls", time.Since(begin), err, other.calls)
				}
			}
			return nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := tb.wrap(h, short)(ctx, event()); err != nil {
			t.Fatal(err)
		}
		if got := num(tb.rows["mail#test#e-1"], "expiration"); got != begin.Add(31*time.Second).Unix() {
			t.Errorf("done, expires at %d", got)
		}
	})
}

// A handler that lost its claim does not remove the new claim when it fails. When it
// succeeds, its success is stored.
func TestLateEnd(t *testing.T) {
	for _, fails := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			tb := newTable()
			goOn, ended := make(chan bool), make(chan error)
			late := &handler{do: func(ctx context.Context) error {
				<-ctx.Done()
				<-goOn
				if fails {
					return context.Cause(ctx)
				}
				return nil
			}}
			go func() { ended <- tb.wrap(late)(context.Background(), event()) }()
			time.Sleep(time.Minute + time.Millisecond)
			var err error
			var during sluice.Item
			other := &handler{do: func(context.Context) error {
				goOn <- true
				err = <-ended
				during = tb.rows["mail#test#e-1"]
				return nil
			}}
			if err := tb.wrap(other)(t.Context(), event()); err != nil {
				t.Fatal(err)
			}
			if !fails && (err != nil || str(during, "status") != "COMPLETED") {
				t.Errorf("success: %v, then %s", err, during.Raw())
			}
			if fails && (err == nil || strings.Contains(err.Error(), "stays") || !strings.Contains(err.Error(), "longer than Options.InProgress, 1m0s") || str(during, "status") != "INPROGRESS") {
				t.Errorf("failure: %v, then %s", err, during.Raw())
			}
		})
	}
}

// After a success whose row cannot be written, only the row is retried.
func TestCompletedCannotBeWritten(t *testing.T) {
	tb, h := newTable(), &handler{}
	tb.fail = func(op dynamo.Op) (error, error) {
		if op.Kind == dynamo.UpdateOp {
			return errDown, nil
		}
		return nil, nil
	}
	err := tb.wrap(h)(t.Context(), event())
	var part *sluice.Remaining
	for range 3 {
		if !errors.As(err, &part) || part.Rest == nil || !errors.Is(err, errDown) || !strings.Contains(err.Error(), "mail#test#e-1 is done") {
			t.Fatal(err)
		}
		err = part.Rest(t.Context(), event())
	}
	tb.fail = nil
	if err := part.Rest(t.Context(), event()); err != nil || h.calls != 1 {
		t.Errorf("%v, %d calls", err, h.calls)
	}
	if err := tb.wrap(h)(t.Context(), event()); !sluice.IsSkip(err) || h.calls != 1 {
		t.Errorf("%v, %d calls", err, h.calls)
	}
}

// An answer that is lost, after the service has done its work and the client
// has tried again or given up, costs no waiting for one's own claim.
func TestLostAnswers(t *testing.T) {
	tb, h := newTable(), &handler{}
	twice := func(o *Options) {
		o.Write = func(ctx context.Context, op dynamo.Op) error {
			tb.Write(ctx, op)
			return tb.Write(ctx, op)
		}
	}
	if err := tb.wrap(h, twice)(t.Context(), event()); err != nil || h.calls != 1 {
		t.Errorf("tried again: %v, %d calls", err, h.calls)
	}
	tb = newTable()
	tb.fail = func(op dynamo.Op) (error, error) {
		if op.Kind == dynamo.PutOp {
			return nil, errDown
		}
		return nil, nil
	}
	if err := tb.wrap(h)(t.Context(), event()); !errors.Is(err, errDown) || h.calls != 1 || !strings.Contains(err.Error(), "claiming mail#test#e-1 in table idem") {
		t.Errorf("given up: %v, %d calls", err, h.calls)
	}
	tb.fail = nil
	if err := tb.wrap(h)(t.Context(), event()); err != nil || h.calls != 2 {
		t.Errorf("%v, %d calls", err, h.calls)
	}
	tb.fail = func(op dynamo.Op) (error, error) {
		if op.Kind == dynamo.DeleteOp {
			return errDown, nil
		}
		return nil, nil
	}
	other := event()
	other.EventID = "e-2"
	bad := errors.New("bad mail")
	h.do = func(context.Context) error { return sluice.Permanent(bad) }
	if err := tb.wrap(h)(t.Context(), other); !errors.Is(err, bad) || !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "bad mail (and the claim of mail#test#e-2 stays until") {
		t.Error(err)
	}
}

func TestRemaining(t *testing.T) {
	tb, h := newTable(), &handler{}
	rests := 0
	h.do = func(context.Context) error {
		return &sluice.Remaining{After: time.Second, Err: errDown, Rest: func(context.Context, *sluice.Record) error { rests++; return nil }}
	}
	err := tb.wrap(h)(t.Context(), event())
	var part *sluice.Remaining
	if !errors.As(err, &part) || part.After != time.Second || !errors.Is(err, errDown) || len(tb.rows) != 0 {
		t.Fatal(err)
	}
	if err := part.Rest(t.Context(), event()); err != nil || rests != 1 || h.calls != 1 {
		t.Errorf("%v, %d rests, %d calls", err, rests, h.calls)
	}
	for range 2 {
		if err := tb.wrap(h)(t.Context(), event()); !sluice.IsSkip(err) || h.calls != 1 {
			t.Errorf("%v, %d calls", err, h.calls)
		}
		if err := part.Rest(t.Context(), event()); !sluice.IsSkip(err) || rests != 1 {
			t.Errorf("%v, %d rests", err, rests)
		}
	}
}

func TestKeyAndPayload(t *testing.T) {
	tb, h := newTable(), &handler{}
	handle := tb.wrap(h, func(o *Options) {
		o.Key = func(rec *sluice.Record) (string, error) {
			v, _ := rec.New.Lookup("pk")
			return v.Str(), nil
		}
		o.Payload = func(rec *sluice.Record) []byte {
			v, _ := rec.New.Lookup("amount")
			return v.Raw()
		}
	})
	if err := handle(t.Context(), event()); err != nil {
		t.Fatal(err)
	}
	again := event()
	again.EventID = "e-7"
	if err := handle(t.Context(), again); !sluice.IsSkip(err) || h.calls != 1 {
		t.Errorf("%v, %d calls", err, h.calls)
	}
	again.New = parse(`{"pk":{"S":"a"},"amount":{"N":"6"}}`)
	err := handle(t.Context(), again)
	if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), keyhash.Text("mail#a")+" stands for another payload") || h.calls != 1 {
		t.Errorf("%v, %d calls", err, h.calls)
	}
	again.New = parse(`{"amount":{"N":"6"}}`)
	if err := handle(t.Context(), again); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "empty key") {
		t.Error(err)
	}
	again.EventID = ""
	if err := tb.wrap(h)(t.Context(), again); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "no eventID") || h.calls != 1 {
		t.Error(err)
	}
}

func TestNothingIsClaimedTooLate(t *testing.T) {
	tb, h := newTable(), &handler{}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errDown)
	if err := tb.wrap(h)(ctx, event()); !errors.Is(err, errDown) || h.calls != 0 || tb.ops() != "" {
		t.Errorf("%v, %d calls", err, h.calls)
	}
}

func TestRowsThatAreNone(t *testing.T) {
	for row, want := range map[string]string{
		`{"id":{"S":"mail#test#e-1"},"expiration":{"N":"99999999999"}}`:                                                                                         `"status" is "", want INPROGRESS or COMPLETED`,
		`{"id":{"S":"mail#test#e-1"},"expiration":{"N":"99999999999"},"status":{"S":"INPROGRESS"},"in_progress_expiration":{"N":"99999999999999999999999999"}}`: `"in_progress_expiration" is no whole number`,
	} {
		tb, h := newTable(), &handler{}
		handle := tb.wrap(h, func(o *Options) {
			o.Write = func(context.Context, dynamo.Op) error {
				return &dynamo.ConditionError{Failed: []int{0}, Items: []sluice.Item{parse(row)}, Tables: []string{"idem"}}
			}
		})
		if err := handle(t.Context(), event()); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), want) || h.calls != 0 {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	tb, h := newTable(), &handler{}
	handle := tb.wrap(h, func(o *Options) {
		o.Write = func(context.Context, dynamo.Op) error { return &dynamo.ConditionError{Failed: []int{0}} }
	})
	if err := handle(t.Context(), event()); err == nil || sluice.IsPermanent(err) || sluice.IsSkip(err) || h.calls != 0 {
		t.Error(err)
	}
}

func TestOnceNamesWhatIsWrong(t *testing.T) {
	defer func() {
		got := fmt.Sprint(recover())
		for _, want := range []string{`Once("mail#test")`, `the name is "mail#test"`, "Options.Table is missing", "Options.Write is missing", "Options.InProgress is -1s", "Options.TTL is 1ms"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s\ndoes not say %q", got, want)
			}
		}
	}()
	Once("mail#test", Options{TTL: time.Millisecond, InProgress: -time.Second})
}

func TestOnceNeedsAName(t *testing.T) {
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, `the name is ""`) {
			t.Error(got)
		}
	}()
	Once("", Options{})
}
