package replay

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
)

func name(n string) router.Option { return router.Name(n) }

// A skip is not a failure: one attempt is enough.
func TestSkipIsNoFailure(t *testing.T) {
	w := world{fails: map[string]error{"one a": sluice.Skip("no use"), "two a": sluice.Permanent(errors.New("never"))}}
	o := w.options()
	o.Attempts = 1
	p, err := Run(t.Context(), w.routes(), strings.NewReader(rec("a", 1)), o)
	if err != nil || p.Skipped != 1 || p.Parked != 1 || len(w.parked) != 1 || w.parked[0] != "two a 1: never" {
		t.Errorf("%v, %+v, parked %q", err, p, w.parked)
	}
}

// A file does not expire: replay ignores the route's maxAge.
func TestNothingIsTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w world
		m := router.New(router.TypeFrom(router.Table(map[string]string{"test": "t"})))
		calls := 0
		m.Handle("t#*", func(context.Context, *sluice.Record) error {
			if calls++; calls < 3 {
				return sluice.RetryAfter(48*time.Hour, errors.New("down"))
			}
			return nil
		}, router.MaxAge(time.Hour))
		p, err := Run(t.Context(), m, strings.NewReader(rec("a", 1)), w.options())
		if err != nil || p.Done != 1 || calls != 3 || w.parked != nil {
			t.Errorf("%v, %+v, %d calls, parked %q", err, p, calls, w.parked)
		}
	})
}

// The rest that a handler returns is called again, alone. Its calls count as attempts
// of the same record.
func TestRemaining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w world
		m := router.New(router.TypeFrom(router.Table(map[string]string{"test": "t"})))
		var called []string
		var rest sluice.Handler
		rest = func(_ context.Context, rec *sluice.Record) error {
			called = append(called, "rest "+key(rec))
			if key(rec) == "never" {
				return &sluice.Remaining{Rest: rest, Err: errors.New("half")}
			}
			return nil
		}
		begin := time.Now()
		m.Handle("t#*", func(_ context.Context, rec *sluice.Record) error {
			called = append(called, "whole "+key(rec))
			return &sluice.Remaining{Rest: rest, After: time.Hour, Err: errors.New("half")}
		})
		o := w.options()
		o.Attempts = 3
		p, err := Run(t.Context(), m, strings.NewReader(rec("a", 1)), o)
		if err != nil || p.Done != 1 || !slices.Equal(called, []string{"whole a", "rest a"}) || time.Since(begin) < time.Hour {
			t.Errorf("%v, %+v, called %q after %v", err, p, called, time.Since(begin))
		}
		called = nil
		p, err = Run(t.Context(), m, strings.NewReader(rec("never", 2)), o)
		if err != nil || p.Parked != 1 || !slices.Equal(called, []string{"whole never", "rest never", "rest never"}) || !strings.Contains(w.parked[0], "given up after 3 attempts") || !strings.Contains(w.parked[0], "half") {
			t.Errorf("%v, %+v, called %q, parked %q", err, p, called, w.parked)
		}
	})
}

// A record that fails for all routes holds later changes of its item on all.
func TestFailedForAllRoutes(t *testing.T) {
	for _, later := range []string{rec("a", 2), letter("a", 2, "one")} {
		var w world
		o := w.options()
		o.Items = new(Items)
		broken := strings.Replace(rec("a", 1), `"NewImage":{"pk":{"S"`, `"NewImage":{"pk":{"X"`, 1)
		for _, in := range []string{broken, later + "\n" + rec("b", 3)} {
			if _, err := Run(t.Context(), w.routes(), strings.NewReader(in), o); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.of("one", "a")) != 0 || len(w.of("one", "b")) != 1 || len(w.parked) < 2 {
			t.Errorf("handled %q, parked %q", w.handled, w.parked)
		}
	}
}
