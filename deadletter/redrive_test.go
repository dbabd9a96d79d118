package deadletter

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// calls is a handler that notes what it handled.
type calls struct {
	got    []string
	answer func(rec *sluice.Record) error
}

func (c *calls) handle(_ context.Context, rec *sluice.Record) error {
	c.got = append(c.got, fmt.Sprint(recordtest.Nth(rec.Sequence), " ", rec.Origin))
	if c.answer == nil {
		return nil
	}
	return c.answer(rec)
}

func TestRedrive(t *testing.T) {
	down := errors.New("still down")
	for _, tt := range []struct {
		name  string
		err   func() error
		wants string
	}{
		{"success", func() error { return nil }, ""},
		{"skip", func() error { return sluice.Skip("not active") }, ""},
		{"skip with a cause", func() error { return fmt.Errorf("search 1: %w", sluice.Skip("not active")) }, ""},
		{"skip beside a failure", func() error { return errors.Join(sluice.Skip("not active"), down) }, "still down"},
		{"skip to be tried again", func() error { return sluice.RetryAfter(time.Second, sluice.Skip("not yet")) }, "not yet"},
		{"failure", func() error { return down }, "still down"},
		{"permanent", func() error { return sluice.Permanent(down) }, "still down"},
		{"panic", func() error { panic("ouch") }, "panic: ouch"},
		{"goexit", func() error { runtime.Goexit(); return nil }, "ended its goroutine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBox(state.NewMemory(), "app")
			var r, other calls
			r.answer = func(*sluice.Record) error { return tt.err() }
			m := router.New()
			m.Handle("*#INSERT", r.handle, router.Name("r"), router.Redrive())
			m.Handle("*#*", other.handle, router.Name("other"))
			one := park(t, b, record("a", 10), "r")
			err := b.Redrive(t.Context(), m, one, How{})
			if !slices.Equal(r.got, []string{"10 redriven"}) || other.got != nil {
				t.Fatalf("the routes got %v and %v", r.got, other.got)
			}
			e, getErr := b.Get(t.Context(), one)
			if tt.wants == "" {
				if err != nil || !errors.Is(getErr, ErrNotFound) {
					t.Fatalf("Redrive: %v; the entry: %v", err, getErr)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.wants) || !strings.Contains(err.Error(), one) || !strings.Contains(err.Error(), `"r"`) {
				t.Errorf("Redrive: %v, want %q with id and route", err, tt.wants)
			}
			if getErr != nil || e.Attempts != 9 || e.Redrives != 1 || !strings.Contains(e.Last.Error, tt.wants) || e.First.Error != "first <error>" {
				t.Errorf("the entry: %+v, %v", e, getErr)
			}
		})
	}
}

func TestRedriveRefused(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	var c calls
	m := router.New()
	m.Handle("*#INSERT", c.handle, router.Name("fenceless"))
	m.Handle("*#INSERT", c.handle, router.Name("fenced"), router.Redrive())
	for route, want := range map[string]string{
		"fenceless": "fenceless",
		"":          "fenceless",
		"removed":   `route "removed"`,
	} {
		one := park(t, b, record("a", 10), route)
		before, _ := b.Get(t.Context(), one)
		err := b.Redrive(t.Context(), m, one, How{})
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", route, err)
		}
		if after, err := b.Get(t.Context(), one); err != nil || fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%q: the entry was changed: %+v, %v", route, after, err)
		}
	}
	if c.got != nil {
		t.Errorf("handlers were called: %v", c.got)
	}
	if err := b.Redrive(t.Context(), m, "none", How{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("Redrive of none: %v", err)
	}
}

// A matcher that knows nothing of redriving is held to it all the same.
type anyMatcher []*sluice.Route

func (m anyMatcher) Routes() []*sluice.Route { return m }
func (m anyMatcher) Match(dst []*sluice.Route, _ *sluice.Record) ([]*sluice.Route, error) {
	return append(dst, m...), nil
}

func TestRedriveNeedsTheOption(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	var c calls
	one := park(t, b, record("a", 10), "r")
	err := b.Redrive(t.Context(), anyMatcher{{Name: "r", Handler: c.handle}}, one, How{})
	if !errors.Is(err, ErrRefused) || c.got != nil {
		t.Fatalf("Redrive: %v, calls %v", err, c.got)
	}
}

func TestRedriveOfAllRoutes(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	var good, bad calls
	bad.answer = func(*sluice.Record) error { return errors.New("no") }
	m := anyMatcher{{Name: "good", Handler: good.handle, Redrive: true}, {Name: "bad", Handler: bad.handle, Redrive: true}}
	rec := record("a", 10)
	one := park(t, b, rec, "")
	if err := b.Redrive(t.Context(), m, one, How{}); err == nil || !strings.Contains(err.Error(), `"bad"`) {
		t.Fatalf("Redrive: %v", err)
	}
	if got := list(t, b); !slices.Equal(got, []string{"test/10/bad"}) {
		t.Fatalf("left: %v, want one entry of the route that failed", got)
	}
	if held, _ := b.Holds(t.Context(), record("a", 11), "good"); held {
		t.Error("the route that succeeded is held")
	}
	if held, _ := b.Holds(t.Context(), record("a", 11), "bad"); !held {
		t.Error("the route that failed is not held")
	}
	bad.answer = nil
	if err := b.Redrive(t.Context(), m, idOf(rec, "bad"), How{}); err != nil {
		t.Fatal(err)
	}
	if got := list(t, b); got != nil || len(good.got) != 1 || len(bad.got) != 2 {
		t.Fatalf("left: %v; calls: %v, %v", got, good.got, bad.got)
	}
}

func TestRedriveUndecodable(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	rec := sluice.DecodeRecord([]byte("not a record"))
	if err := b.Park(t.Context(), rec, failure("")); err != nil {
		t.Fatal(err)
	}
	one := idOf(rec, "")
	if err := b.Redrive(t.Context(), anyMatcher{}, one, How{}); err == nil || !strings.Contains(err.Error(), "undecodable") {
		t.Fatalf("Redrive: %v", err)
	}
	if e, err := b.Get(t.Context(), one); err != nil || string(e.Raw) != "not a record" {
		t.Fatalf("the entry: %+v, %v", e, err)
	}
}

// A redrive handles the parked records again once the fault is mended. The
// changes of an item keep their order.
func TestRedriveAll(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	var r, s calls
	r.answer = func(rec *sluice.Record) error {
		if rec.Sequence == recordtest.Sequence(102) {
			return errors.New("poison")
		}
		return nil
	}
	m := anyMatcher{{Name: "r", Handler: r.handle, Redrive: true}, {Name: "s", Handler: s.handle, Redrive: true}}
	for i := range 2*page + 50 { // several pages of other items
		park(t, b, record(fmt.Sprint("item ", i), 1000+i), "s")
	}
	for n := 101; n <= 103; n++ {
		park(t, b, record("a", n), "r")
		park(t, b, record("b", 10*n), "r")
	}
	park(t, b, record("a", 104), "s")
	park(t, b, record("a", 105), "")
	bad := sluice.DecodeRecord([]byte("bad"))
	if err := b.Park(t.Context(), bad, failure("")); err != nil {
		t.Fatal(err)
	}
	bad2 := sluice.DecodeRecord([]byte("bad 2"))
	if err := b.Park(t.Context(), bad2, failure("")); err != nil {
		t.Fatal(err)
	}

	report, err := b.RedriveAll(t.Context(), m, Filter{Route: "r"}, How{})
	if want := (Report{Done: 4, Failed: 1, Waiting: 1}); report != want || err == nil || !strings.Contains(err.Error(), "poison") {
		t.Fatalf("RedriveAll of r = %+v, %v; want %+v", report, err, want)
	}
	if want := []string{"101 redriven", "102 redriven", "1010 redriven", "1020 redriven", "1030 redriven"}; !slices.Equal(r.got, want) || s.got != nil {
		t.Fatalf("calls: %v and %v, want %v", r.got, s.got, want)
	}

	report, err = b.RedriveAll(t.Context(), m, Filter{}, How{})
	if want := (Report{Done: 2*page + 51, Failed: 3, Waiting: 2}); report != want || err == nil {
		t.Fatalf("RedriveAll = %+v, %v; want %+v", report, err, want)
	}
	r.answer, r.got = nil, nil
	report, _ = b.RedriveAll(t.Context(), m, Filter{}, How{})
	if want := (Report{Done: 3, Failed: 2}); report != want {
		t.Fatalf("RedriveAll once mended = %+v; want %+v", report, want)
	}
	if want := []string{"102 redriven", "103 redriven", "105 redriven"}; !slices.Equal(r.got, want) {
		t.Fatalf("calls: %v, want %v", r.got, want)
	}
}

// A table's streams follow one another: what was parked of the earlier one
// comes first, whatever the sequence numbers are.
func TestRedriveAllOfSeveralStreams(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	down := true
	c := calls{answer: func(rec *sluice.Record) error {
		if down && rec.Sequence == recordtest.Sequence(10) {
			return errors.New("down")
		}
		return nil
	}}
	m := router.New()
	m.Handle("*#INSERT", c.handle, router.Name("r"), router.Redrive())
	park(t, b, itemOn(laterARN, "a", 5), "r")
	park(t, b, itemOn(recordtest.ARN, "a", 10), "r")
	park(t, b, itemOn(earlierARN, "a", 20), "r")
	parkGap(t, b, gap("s", 1))
	report, _ := b.RedriveAll(t.Context(), m, Filter{}, How{})
	if want := (Report{Done: 1, Failed: 1, Waiting: 1, Gaps: 1}); report != want {
		t.Fatalf("RedriveAll = %+v, want %+v", report, want)
	}
	down = false
	if report, err := b.RedriveAll(t.Context(), m, Filter{}, How{}); report != (Report{Done: 2, Gaps: 1}) || err != nil {
		t.Fatalf("RedriveAll = %+v, %v", report, err)
	}
	if want := []string{"20 redriven", "10 redriven", "10 redriven", "5 redriven"}; !slices.Equal(c.got, want) {
		t.Errorf("calls %v, want %v", c.got, want)
	}
}

func TestRedriveAllBehindAllRoutes(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	var c calls
	c.answer = func(*sluice.Record) error { return errors.New("no") }
	m := anyMatcher{{Name: "r", Handler: c.handle, Redrive: true}}
	unmatched := park(t, b, record("a", 10), "")
	park(t, b, record("a", 11), "r")
	report, _ := b.RedriveAll(t.Context(), m, Filter{}, How{})
	if want := (Report{Failed: 1, Waiting: 1}); report != want || len(c.got) != 1 {
		t.Fatalf("RedriveAll = %+v, calls %v; want %+v and one call", report, c.got, want)
	}
	if _, err := b.Get(t.Context(), unmatched); !errors.Is(err, ErrNotFound) {
		t.Errorf("the entry for all routes is still there: %v", err)
	}
}

// An entry for all routes is one of every route's: a redrive of a single route
// does not run it, and must not run what came after it either.
func TestRedriveOfARouteBehindAllRoutes(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	var c calls
	m := anyMatcher{{Name: "r", Handler: c.handle, Redrive: true}}
	park(t, b, record("a", 10), "r")
	park(t, b, record("a", 11), "")
	park(t, b, record("a", 12), "r")
	park(t, b, record("b", 13), "r")
	report, err := b.RedriveAll(t.Context(), m, Filter{Route: "r"}, How{})
	if want := (Report{Done: 2, Waiting: 1}); report != want || err != nil {
		t.Errorf("RedriveAll = %+v, %v; want %+v", report, err, want)
	}
	if want := []string{"10 redriven", "13 redriven"}; !slices.Equal(c.got, want) {
		t.Errorf("calls: %v, want %v", c.got, want)
	}
}

func TestRedriveCancelled(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	ctx, cancel := context.WithCancel(t.Context())
	var c calls
	c.answer = func(*sluice.Record) error { cancel(); return ctx.Err() }
	m := anyMatcher{{Name: "r", Handler: c.handle, Redrive: true}}
	one := park(t, b, record("a", 10), "r")
	park(t, b, record("b", 11), "r")
	told := func(o Outcome) { t.Errorf("a cut call is told as %+v", o) }
	if r, err := b.RedriveAll(ctx, m, Filter{}, How{Told: told}); !errors.Is(err, context.Canceled) || len(c.got) != 1 || r != (Report{}) {
		t.Fatalf("RedriveAll: %+v, %v after %v", r, err, c.got)
	}
	if e, err := b.Get(t.Context(), one); err != nil || e.Attempts != 8 || e.Redrives != 0 {
		t.Errorf("a cut call counts against the record: %+v, %v", e, err)
	}

	// A route that succeeded is done with, although the caller has gone.
	ctx, cancel = context.WithCancel(t.Context())
	c.answer = func(*sluice.Record) error { cancel(); return nil }
	if err := b.Redrive(ctx, m, one, How{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(t.Context(), one); !errors.Is(err, ErrNotFound) {
		t.Errorf("the entry is still there: %v", err)
	}
}

func TestRedriveTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBox(state.NewMemory(), "app")
		m := anyMatcher{{Name: "r", Redrive: true, Timeout: time.Minute, Handler: func(ctx context.Context, _ *sluice.Record) error {
			<-ctx.Done()
			return ctx.Err()
		}}}
		one := park(t, b, record("a", 10), "r")
		if err := b.Redrive(t.Context(), m, one, How{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Redrive: %v", err)
		}
		if e, err := b.Get(t.Context(), one); err != nil || e.Attempts != 9 {
			t.Fatalf("the entry: %+v, %v", e, err)
		}
	})
}

// A message has no later changes that a redrive could overtake: every route of
// messages takes it, as the router says.
func TestMessagesAreRedriven(t *testing.T) {
	for _, route := range []string{"r", ""} {
		b := NewBox(state.NewMemory(), "app")
		var r calls
		m := router.New()
		m.Handle("job#MESSAGE", r.handle, router.Name("r"))
		msg := sluice.Message{ID: "m1", Body: `{"kind":"job"}`}
		one := park(t, b, msg.Record("arn:aws:sqs:eu-west-1:123456789012:jobs"), route)
		if err := b.Redrive(t.Context(), m, one, How{}); err != nil || len(r.got) != 1 {
			t.Errorf("parked for %q: %v; the route got %q", route, err, r.got)
		}
	}
}
