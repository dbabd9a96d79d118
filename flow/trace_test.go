package flow

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// follower is a Tracer that checks how a flow uses it.
type follower struct {
	errorf                                        func(format string, args ...any)
	pages, submitted, records, ended, all, commit atomic.Int64 // all: settled

	mu    sync.Mutex
	lines []string // of calls and parkings
}

type followedKey struct{}

var errTraced = errors.New("down")

func (f *follower) note(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, line)
}

func (f *follower) Page(_ context.Context, recs []sluice.Record) PageTrace {
	if len(recs) == 0 {
		f.errorf("a page without records is traced")
	}
	f.pages.Add(1)
	return f
}

func (f *follower) Submitted() { f.submitted.Add(1) }

func (f *follower) Record(at time.Time) RecordTrace {
	f.records.Add(1)
	if at.IsZero() {
		f.errorf("a record is traced that was not submitted")
	}
	return &followed{follower: f}
}

func (f *follower) Commit(ctx context.Context, _ string, callers []context.Context) (context.Context, func([]error)) {
	f.commit.Add(1)
	for _, c := range callers {
		if c == nil { // of a flow without a Tracer
			continue
		}
		if _, ok := c.Value(followedKey{}).(*followed); !ok {
			f.errorf("a commit has the item of a caller without a traced call")
		}
	}
	return ctx, func(errs []error) {
		f.commit.Add(-1)
		if errs != nil && len(errs) != len(callers) {
			f.errorf("%d errors for %d items", len(errs), len(callers))
		}
	}
}

// check checks a flow that is idle.
func (f *follower) check() {
	if p, s := f.pages.Load(), f.submitted.Load(); p != s {
		f.errorf("%d pages were traced, and %d submitted", p, s)
	}
	if r, e := f.records.Load(), f.ended.Load(); r != e {
		f.errorf("%d records were traced, and %d ended", r, e)
	}
	if c := f.commit.Load(); c != 0 {
		f.errorf("%d commits did not end", c)
	}
}

type followed struct {
	*follower
	inside, over atomic.Bool
	open         bool
}

// enter finds two calls at once, and those after the end.
func (r *followed) enter(what string) func() {
	if r.inside.Swap(true) {
		r.errorf("%s beside another method of the record's trace", what)
	}
	if r.over.Load() {
		r.errorf("%s after End", what)
	}
	return func() { r.inside.Store(false) }
}

func (r *followed) begin(ctx context.Context, what, line string) context.Context {
	defer r.enter(what)()
	if r.open {
		r.errorf("%s before EndCall of the last", what)
	}
	r.open = true
	r.note(line)
	return context.WithValue(ctx, followedKey{}, r)
}

func (r *followed) Call(ctx context.Context, rec *sluice.Record, route *sluice.Route, began time.Time, attempt int) context.Context {
	if attempt < 1 || began.IsZero() {
		r.errorf("attempt %d, began at %v", attempt, began)
	}
	return r.begin(ctx, "Call", strings.Repeat("re", attempt-1)+"call "+route.Name)
}

func (r *followed) Park(ctx context.Context, _ *sluice.Record, route, letter string) context.Context {
	return r.begin(ctx, "Park", "park "+route+letter)
}

func (r *followed) EndCall(rec *sluice.Record, how Result, took time.Duration, err error) {
	defer r.enter("Done")()
	if (err == nil) != (how == Done) || took < 0 {
		r.errorf("result %v after %v with error %v", how, took, err)
	}
	r.open = false
	r.note(how.String())
}

func (r *followed) End(settled bool) {
	defer r.enter("End")()
	if r.open {
		r.errorf("End before EndCall")
	}
	r.over.Store(true)
	r.ended.Add(1)
	if settled {
		r.all.Add(1)
	}
}

// What a Tracer sees of records that succeed, are retried, parked, refused by the dead
// letters, undecodable, unrouted.
func TestTracer(t *testing.T) {
	undecodable := *sluice.DecodeRecord([]byte(`{"nonsense":`))
	for name, tt := range map[string]struct {
		o    Options
		rec  sluice.Record
		errs []error // of the handler
		want string
	}{
		"done":        {Options{}, rec("a", 1), []error{nil}, "call r, done"},
		"skipped":     {Options{}, rec("a", 1), []error{sluice.Skip("no")}, "call r, skipped"},
		"retried":     {Options{}, rec("a", 1), []error{errTraced, errTraced, nil}, "call r, retried, recall r, retried, rerecall r, done"},
		"parked":      {Options{DeadLetter: &letters{}}, rec("a", 1), []error{sluice.Permanent(errTraced)}, "call r, parked, park r, parked"},
		"stopped":     {Options{Policy: Stop}, rec("a", 1), []error{errTraced}, "call r, stopped"},
		"undecodable": {Options{DeadLetter: &letters{}}, undecodable, nil, "parked, park , parked"},
		"panic":       {Options{Policy: Stop}, rec("a", 1), []error{errTest}, "call r, stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &follower{errorf: t.Errorf}
				var calls atomic.Int64
				m := routes(func(ctx context.Context, _ *sluice.Record) error {
					if _, ok := ctx.Value(followedKey{}).(*followed); !ok {
						t.Error("the handler has not the context of Call")
					}
					err := tt.errs[calls.Add(1)-1]
					if errors.Is(err, errTest) {
						panic(err)
					}
					return err
				})
				m.Routes()[0].Name = "r"
				tt.o.Logger, tt.o.Hooks.Tracer = quiet, f
				fl := Open(t.Context(), m, tt.o)
				mustSubmit(t, fl, tt.rec)
				settled, _ := fl.Close(t.Context())
				f.check()
				if got := strings.Join(f.lines, ", "); got != tt.want || f.all.Load() != int64(settled) {
					t.Errorf("traced %s, want %s; %d settled, want %d", got, tt.want, f.all.Load(), settled)
				}
			})
		})
	}
}

// A record without a route is not traced.
func TestTracerOfAnUnroutedRecord(t *testing.T) {
	f := &follower{errorf: t.Errorf}
	fl := Open(t.Context(), &table{pick: func(*sluice.Record) ([]int, error) { return nil, nil }}, Options{Logger: quiet, Hooks: Hooks{Tracer: f}})
	mustSubmit(t, fl, rec("a", 1))
	if _, err := fl.Close(t.Context()); err != nil || f.records.Load() != 0 || !slices.Equal(f.lines, nil) {
		t.Errorf("%v, %d records, %v", err, f.records.Load(), f.lines)
	}
	f.check()
}

// holding is a holder that has earlier changes for route a. It tells when it is asked
// for route b.
type holding struct {
	letters
	asked chan struct{}
}

func (h *holding) Holds(_ context.Context, _ *sluice.Record, route string) (bool, error) {
	if route == "b" {
		close(h.asked)
	}
	return route == "a", nil
}

// Close beside the first call for a record that waits for its parking. For the race
// detector.
func TestTracerOfACloseBesideTheFirstCall(t *testing.T) {
	for range 20 {
		f := &follower{errorf: t.Errorf}
		h, release, left := &holding{asked: make(chan struct{})}, make(chan struct{}), make(chan struct{})
		fl := Open(t.Context(), routes(ok, func(context.Context, *sluice.Record) error { <-release; close(left); return nil }),
			Options{Logger: quiet, DeadLetter: h, ParkItem: true, Hooks: Hooks{Tracer: f}})
		mustSubmit(t, fl, rec("a", 1))
		<-h.asked
		for range 100 { // the call begins
			runtime.Gosched()
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := fl.Close(ended); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(release)
		<-left
	}
}
