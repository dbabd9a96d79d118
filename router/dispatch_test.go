package router

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// script answers the n-th call of a handler with its n-th error.
type script struct {
	errs  []error
	calls int
}

func (s *script) handle(context.Context, *sluice.Record) error {
	s.calls++
	if s.calls > len(s.errs) {
		return nil
	}
	return s.errs[s.calls-1]
}

func TestDispatch(t *testing.T) {
	var (
		flaky = errors.New("flaky")
		fatal = sluice.Permanent(errors.New("fatal"))
		skip  = sluice.Skip("nothing to do")
	)
	for _, tt := range []struct {
		name   string
		routes [][]error // of each route, the answers to its calls; nil after them
		rounds int       // until nothing remains
		calls  []int     // of each route in the end
		want   string    // the last outcome
		after  time.Duration
	}{
		{"no route", nil, 1, nil, "<nil>", 0},
		{"one", [][]error{{nil}}, 1, []int{1}, "<nil>", 0},
		{"one fails", [][]error{{flaky}}, 1, []int{1}, "flaky", 0},
		{"one skips", [][]error{{skip}}, 1, []int{1}, "skipped: nothing to do", 0},
		{"all succeed", [][]error{{}, {}}, 1, []int{1, 1}, "<nil>", 0},
		{"all skip", [][]error{{skip}, {skip}}, 1, []int{1, 1}, "skipped: nothing to do", 0},
		{"one of two skips", [][]error{{skip}, {}}, 1, []int{1, 1}, "<nil>", 0},
		{"first fails once", [][]error{{flaky}, {}}, 2, []int{2, 1}, "<nil>", 0},
		{"two fail apart", [][]error{{flaky}, {}, {flaky, flaky}}, 3, []int{2, 1, 3}, "<nil>", 0},
		{"skip beside a failure", [][]error{{errors.Join(skip, flaky)}, {}}, 2, []int{2, 1}, "<nil>", 0},
		{"skip to be tried again", [][]error{{sluice.RetryAfter(time.Minute, errors.Join(flaky, skip))}, {}}, 2, []int{2, 1}, "<nil>", time.Minute},
		{"remaining without a rest", [][]error{{&sluice.Remaining{After: time.Second, Err: sluice.RetryAfter(time.Minute, flaky)}}, {}}, 2, []int{2, 1}, "<nil>", time.Minute},
		{"skip after failure", [][]error{{flaky, skip}, {skip}}, 2, []int{2, 1}, "skipped: nothing to do", 0},
		{"permanent", [][]error{{fatal}, {}}, 1, []int{1, 1}, `route "0": fatal`, 0},
		{"permanent waits for the rest", [][]error{{fatal}, {flaky, flaky}}, 3, []int{1, 3}, `route "0": fatal`, 0},
		{"two permanent", [][]error{{fatal}, {flaky, fatal}}, 2, []int{1, 2}, "route \"0\": fatal\nroute \"1\": fatal", 0},
		{"longest wait", [][]error{{sluice.RetryAfter(time.Minute, flaky)}, {sluice.RetryAfter(time.Second, flaky)}}, 2, []int{2, 2}, "<nil>", time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := New(TypeFrom(Table(nil)))
			var scripts []*script
			for i, errs := range tt.routes {
				scripts = append(scripts, &script{errs: errs})
				r.Handle("t#INSERT", scripts[i].handle, Name(fmt.Sprint(i)))
			}
			rec := &sluice.Record{EventName: sluice.Insert, Table: "t"}
			err := r.Dispatch(context.Background(), rec)
			rounds := 1
			var part *sluice.Remaining
			for ; errors.As(err, &part); rounds++ {
				if !errors.Is(err, flaky) || !strings.Contains(err.Error(), `route "`) || sluice.IsPermanent(err) {
					t.Fatalf("remaining: %v", err)
				}
				if rounds == 1 && part.After != tt.after {
					t.Errorf("after %v, want %v", part.After, tt.after)
				}
				err = part.Rest(context.Background(), rec)
				part = nil
			}
			if rounds != tt.rounds || fmt.Sprint(err) != tt.want {
				t.Errorf("%v after %d rounds, want %s after %d", err, rounds, tt.want, tt.rounds)
			}
			if strings.Contains(tt.want, "fatal") != sluice.IsPermanent(err) {
				t.Errorf("permanent: %v", sluice.IsPermanent(err))
			}
			for i, s := range scripts {
				if s.calls != tt.calls[i] {
					t.Errorf("route %d was called %d times, want %d", i, s.calls, tt.calls[i])
				}
			}
		})
	}
}

// A Rest may be called again after its own failure was lost, as when a process
// repeats a call whose answer it did not see.
func TestRestCanBeRepeated(t *testing.T) {
	r := New(TypeFrom(Table(nil)))
	done, failing := &script{}, &script{errs: []error{errors.New("a"), errors.New("b")}}
	r.Handle("t#INSERT", done.handle, Name("done"))
	r.Handle("t#INSERT", failing.handle, Name("failing"))
	rec := &sluice.Record{EventName: sluice.Insert, Table: "t"}
	var part *sluice.Remaining
	if !errors.As(r.Dispatch(context.Background(), rec), &part) {
		t.Fatal("no Remaining")
	}
	part.Rest(context.Background(), rec)
	if err := part.Rest(context.Background(), rec); err != nil || done.calls != 1 || failing.calls != 3 {
		t.Errorf("%v; calls %d, %d", err, done.calls, failing.calls)
	}
}

func TestRemainingOfARoute(t *testing.T) {
	r := New(TypeFrom(Table(nil)))
	whole, part := 0, 0
	r.Handle("t#INSERT", func(context.Context, *sluice.Record) error {
		whole++
		return &sluice.Remaining{
			Rest:  func(context.Context, *sluice.Record) error { part++; return nil },
			After: time.Second,
			Err:   errors.New("half"),
		}
	}, Name("halves"))
	r.Handle("t#INSERT", nothing)
	rec := &sluice.Record{EventName: sluice.Insert, Table: "t"}
	var rem *sluice.Remaining
	if err := r.Dispatch(context.Background(), rec); !errors.As(err, &rem) || rem.After != time.Second {
		t.Fatalf("Dispatch = %v", err)
	}
	if err := rem.Rest(context.Background(), rec); err != nil || whole != 1 || part != 1 {
		t.Errorf("%v; whole %d, part %d", err, whole, part)
	}
}

func TestPanicIsAnError(t *testing.T) {
	r := New(TypeFrom(Table(nil)))
	ran := false
	r.Handle("t#INSERT", func(context.Context, *sluice.Record) error { panic(sluice.Skip("thrown")) }, Name("throws"))
	r.Handle("t#INSERT", func(context.Context, *sluice.Record) error { ran = true; return nil })
	err := r.Dispatch(context.Background(), &sluice.Record{EventName: sluice.Insert, Table: "t"})
	var p *outcomes.Panic
	if !errors.As(err, &p) || !strings.Contains(string(p.Stack), "dispatch_test.go") {
		t.Errorf("error %v", err)
	}
	var skip *sluice.SkipError
	if errors.As(err, &skip) {
		t.Error("what was thrown is taken for an outcome")
	}
	if !ran {
		t.Error("the other route did not run")
	}
}
