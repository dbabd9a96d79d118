package snapshot

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// A backfill calls nobody: routes of changes never see it.
func TestEscalationsNeverFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStub(50)
		var got, fired seen
		r := router.New()
		r.Handle("order#INSERT order#*", into(&fired))
		r.Handle("*#*", into(&fired), router.Name("all changes"))
		r.Handle("order#MESSAGE", into(&fired))
		r.Handle("search#SNAPSHOT", into(&fired))
		r.Handle("order#SNAPSHOT", into(&got))
		run(t, st, r, testOptions(started(t)))
		got.all(t, st)
		if keys, _ := fired.count(); keys > 0 {
			t.Errorf("%d items were taken for changes", keys)
		}

		for _, patterns := range []string{"order#*", "*#*", "order#INSERT"} {
			r := router.New()
			r.Handle(patterns, into(&fired))
			if _, err := New(st.config(), r, testOptions(started(t))); err == nil || !strings.Contains(err.Error(), `such as "order#SNAPSHOT"`) {
				t.Errorf("%s: %v", patterns, err)
			}
		}
	})
}

// The failing items of a route are parked on request, in each segment, and the backfill
// ends.
func TestFailingItemsAreParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, store := newStub(60), started(t)
		box := deadletter.NewBox(store, "sluice")
		o := testOptions(store)
		o.Flow.DeadLetter, o.Scan.Segments = box, 4
		var got seen
		s := newSource(t, st, routed(func(_ context.Context, rec *sluice.Record) error {
			if key(rec) < "k0020" {
				return errors.New("503: try later")
			}
			got.add(rec)
			return nil
		}, router.Name("search"), router.Backoff(100*time.Millisecond, time.Second)), o)
		ended := make(chan error)
		go func() { ended <- s.Run(t.Context()) }()
		time.Sleep(time.Minute)
		if held := len(s.Held()); held != 20 {
			t.Errorf("%d are held", held)
		}
		if n, pending := s.Park("another", false); n+pending != 0 {
			t.Errorf("%d parked of a route that there is not", n)
		}
		if n, pending := s.Park("search", false); n != 20 || pending != 0 {
			t.Errorf("%d parked, %d pending, want 20 parked", n, pending)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		letters, _, err := box.List(t.Context(), "", 100)
		if keys, _ := got.count(); err != nil || len(letters) != 20 || keys != 40 || !s.Progress().Finished {
			t.Errorf("%d dead letters, %v; %d handled; %+v", len(letters), err, keys, s.Progress())
		}
	})
}

// A permanent failure becomes a dead letter, and can be redriven after the repair. A
// temporary failure is retried.
func TestDeadLettersAreRedriven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, store := newStub(60), started(t)
		box := deadletter.NewBox(store, "sluice")
		o := testOptions(store)
		o.Flow.DeadLetter = box
		var got seen
		var mended atomic.Bool
		tries := map[string]int{}
		m := routed(func(_ context.Context, rec *sluice.Record) error {
			switch pk := key(rec); {
			case pk < "k0005" && !mended.Load():
				return sluice.Permanent(errors.New("not yet"))
			case pk < "k0010" && pk >= "k0005":
				got.mu.Lock()
				tries[pk]++
				n := tries[pk]
				got.mu.Unlock()
				if n < 3 {
					return errors.New("now and then")
				}
			}
			got.add(rec)
			return nil
		}, router.Redrive())
		run(t, st, m, o)
		if keys, calls := got.count(); keys != 55 || calls != 55 {
			t.Errorf("%d calls for %d items", calls, keys)
		}
		letters, _, err := box.List(t.Context(), "", 100)
		if err != nil || len(letters) != 5 {
			t.Fatalf("%d dead letters, %v", len(letters), err)
		}
		for _, l := range letters {
			if rec := l.Record(); rec.Err() != nil || rec.EventName != sluice.Snapshot || rec.EventID == "" || !rec.New.Exists() || l.Origin != sluice.Backfilled || l.Table != tableName {
				t.Errorf("%+v, %v", rec, rec.Err())
			}
		}

		// Read again before that, each stays one dead letter.
		o.Again = true
		run(t, st, m, o)
		if letters, _, _ := box.List(t.Context(), "", 100); len(letters) != 5 {
			t.Errorf("%d dead letters after another backfill", len(letters))
		}

		mended.Store(true)
		report, err := box.RedriveAll(t.Context(), m, deadletter.Filter{Route: "order#SNAPSHOT"}, deadletter.How{})
		if err != nil || report.Done != 5 {
			t.Errorf("%+v, %v", report, err)
		}
		got.all(t, st)
	})
}

// A route without Redrive keeps its fence: the item may have changed since.
func TestRedriveIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, store := newStub(1), started(t)
		box := deadletter.NewBox(store, "sluice")
		o := testOptions(store)
		o.Flow.DeadLetter = box
		m := routed(func(context.Context, *sluice.Record) error { return sluice.Permanent(errors.New("no")) })
		run(t, st, m, o)
		if _, err := box.RedriveAll(t.Context(), m, deadletter.Filter{}, deadletter.How{}); !errors.Is(err, deadletter.ErrRefused) {
			t.Errorf("%v", err)
		}
	})
}

// A route that takes nothing at all ends the backfill, and not ten million dead
// letters later. One that takes something does not.
func TestGivesUp(t *testing.T) {
	if localtest.Elsewhere(t) { // thousands of records at a time
		return
	}
	for name, test := range map[string]struct {
		good func(pk string) bool
		ends bool
	}{
		"all are refused": {func(string) bool { return false }, true},
		"nearly all":      {func(pk string) bool { return pk == "k0003" }, false},
		"none is":         {func(string) bool { return true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, store := newStub(300), started(t)
				box := deadletter.NewBox(store, "sluice")
				o := testOptions(store)
				o.Flow.DeadLetter, o.GiveUpAfter = box, 299 // however many overtake the good one
				if test.ends {
					st, o.GiveUpAfter = newStub(3000), 20 // about 1,500 are under way at a time
				}
				var refused atomic.Int64
				r := router.New()
				r.Handle("*#SNAPSHOT", func(context.Context, *sluice.Record) error { return nil }, router.Name("other"))
				r.Handle("order#SNAPSHOT", func(_ context.Context, rec *sluice.Record) error {
					if test.good(key(rec)) {
						return nil
					}
					time.Sleep(time.Second) // the end is known before the next wave
					refused.Add(1)
					return sluice.Permanent(errors.New("it has no version"))
				})
				s := newSource(t, st, r, o)
				err := s.Run(t.Context())
				if test.ends != (err != nil) || s.Progress().Finished == test.ends {
					t.Errorf("%v, %+v", err, s.Progress())
				}
				if test.ends && (!strings.Contains(err.Error(), `the first 20 records failed for good on route "order#SNAPSHOT"`) ||
					!strings.Contains(err.Error(), "it has no version") || refused.Load() > 2500) {
					t.Errorf("after %d: %v", refused.Load(), err)
				}
			})
		})
	}
}

// flaky is a store that takes no values while it is broken.
type flaky struct {
	*state.Memory
	broken atomic.Bool
}

func (f *flaky) PutValue(ctx context.Context, app, name string, data []byte) error {
	if f.broken.Load() {
		return errors.New("disk full")
	}
	return f.Memory.PutValue(ctx, app, name, data)
}

// A store that fails for a while delays nothing and is reported. It gets the progress
// as soon as it works again.
func TestStoreFailsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, store := newStub(100), &flaky{Memory: started(t)}
		o := testOptions(store)
		o.Flow.Concurrency = 1
		saved := 0
		o.Hooks.Saved = func(_ string, _ time.Duration, err error) {
			if err != nil {
				saved++
			}
		}
		var s *Source
		unready, n := false, 0
		m := routed(func(context.Context, *sluice.Record) error {
			n++
			store.broken.Store(n < 80)
			unready = unready || len(s.Troubles()) > 0
			time.Sleep(time.Second)
			return nil
		})
		s = newSource(t, st, m, o)
		ctx, cancel := context.WithTimeout(t.Context(), 95*time.Second)
		defer cancel()
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
		if saved == 0 || !unready {
			t.Errorf("%d writes failed; unready %v", saved, unready)
		}
		store.broken.Store(false)
		var again seen
		run(t, st, routed(into(&again)), o)
		if _, calls := again.count(); calls > 20 || s.Troubles() != nil {
			t.Errorf("%d items came again; %v", calls, s.Troubles())
		}

		// A store that is broken at the start ends the start.
		store.broken.Store(true)
		o.Again = true
		if err := newSource(t, st, routed(into(&again)), o).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "store the progress") {
			t.Errorf("%v", err)
		}
	})
}

// An outage of a handler holds the backfill, parks nothing, and loses nothing.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, store := newStub(100), started(t)
		box := deadletter.NewBox(store, "sluice")
		o := testOptions(store)
		o.Flow.DeadLetter, o.Flow.Window = box, 20
		back := time.Now().Add(time.Hour)
		var got seen
		run(t, st, routed(func(_ context.Context, rec *sluice.Record) error {
			if time.Now().Before(back) {
				return errors.New("down")
			}
			got.add(rec)
			return nil
		}, router.Backoff(time.Second, 10*time.Second)), o)
		got.all(t, st)
		if letters, _, err := box.List(t.Context(), "", 1); len(letters) > 0 || err != nil {
			t.Errorf("%v, %v", letters, err)
		}
	})
}

// Run returns within Grace, also when a handler does not.
func TestStopsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStub(100)
		o := testOptions(started(t))
		o.Grace = 2 * time.Second
		release := make(chan struct{})
		defer close(release)
		s := newSource(t, st, routed(func(context.Context, *sluice.Record) error { <-release; return nil }), o)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := s.Run(ctx); err != nil || time.Since(start) > 3*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "was called before") {
			t.Errorf("a second call: %v", err)
		}
	})
}

// A segment that cannot be read for a while is reported, until a page is read.
func TestSegmentCannotBeReadForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStub(100)
		st.pageSize, st.took = 1, time.Second
		var broken atomic.Bool
		st.fail = func(op string, _ int) string {
			if op == "Scan" && broken.Load() {
				return "InternalServerError"
			}
			return ""
		}
		var got seen
		o := testOptions(started(t))
		o.Scan.Segments = 1
		s := newSource(t, st, routed(into(&got)), o)
		ended := make(chan error)
		go func() { ended <- s.Run(t.Context()) }()
		time.Sleep(10 * time.Second)
		for range 2 {
			broken.Store(true)
			time.Sleep(patient)
			if all := s.Troubles(); all != nil {
				t.Errorf("at once: %v", all)
			}
			time.Sleep(patient)
			if all := s.Troubles(); len(all) != 1 || !strings.Contains(all[0], "segment 0 cannot be read since") {
				t.Errorf("during the failure: %v", all)
			}
			broken.Store(false)
			time.Sleep(lastRetry + 2*time.Second)
			if all := s.Troubles(); all != nil || s.Progress().Finished {
				t.Errorf("after it: %v, %+v", all, s.Progress())
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		got.all(t, st)
	})
}
