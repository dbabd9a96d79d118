package flow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/outcomes"
	"github.com/sluicehq/sluice/internal/recordtest"
)

// script is a handler that returns its errors one after another, then nil.
func script(l *log, name string, errs ...error) sluice.Handler {
	return func(ctx context.Context, r *sluice.Record) error {
		if len(errs) == 0 {
			l.add("%s %d ok", name, nth(r))
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		l.add("%s %d %v", name, nth(r), err)
		return err
	}
}

// hooked collects Handled.
func (l *log) hooks() Hooks {
	return Hooks{Handled: func(_ context.Context, rec *sluice.Record, route *sluice.Route, r Result, took time.Duration, err error) {
		name := "-"
		if route != nil {
			name = route.Name
		}
		l.add("%s %d %v", name, nth(rec), r)
	}}
}

// letters keeps what is parked, after its errors have been used up.
type letters struct {
	log
	errs     []error
	failures []sluice.Failure
	recs     []*sluice.Record
}

func (d *letters) Park(ctx context.Context, r *sluice.Record, f sluice.Failure) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.errs) > 0 {
		err := d.errs[0]
		d.errs = d.errs[1:]
		return err
	}
	d.failures, d.recs = append(d.failures, f), append(d.recs, r)
	d.lines = append(d.lines, fmt.Sprintf("%s %d %d", f.Route, nth(r), f.Attempts))
	return nil
}

func TestARetryRepeatsOnlyWhatHasNotSucceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l, told log
		f := Open(t.Context(), routes(
			script(&l, "a", errDown, errDown),
			script(&l, "b"),
			script(&l, "c", errDown, sluice.Skip("old")),
		), Options{Logger: quiet, Hooks: told.hooks()})
		mustSubmit(t, f, rec("x", 1))
		synctest.Wait()
		l.want(t, "a 1 down", "b 1 ok", "c 1 down") // the others run although the first failed
		mustClose(t, f, 1)
		counts := map[string]int{}
		for _, line := range told.all() {
			counts[line]++
		}
		want := map[string]int{"a 1 retried": 2, "a 1 done": 1, "b 1 done": 1, "c 1 retried": 1, "c 1 skipped": 1}
		if fmt.Sprint(counts) != fmt.Sprint(want) {
			t.Errorf("told %v, want %v", counts, want)
		}
	})
}

func TestRemainingReplacesTheHandlerForThatRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		start := time.Now()
		rest := func(ctx context.Context, r *sluice.Record) error {
			l.add("rest %d after %v", nth(r), time.Since(start))
			return nil
		}
		f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
			l.add("all %d", nth(r))
			if nth(r) == 1 {
				return fmt.Errorf("wrapped: %w", &sluice.Remaining{Rest: rest, After: 5 * time.Second, Err: errDown})
			}
			return nil
		}), Options{Logger: quiet})
		mustSubmit(t, f, recs("x", "x")...)
		mustClose(t, f, 2)
		l.want(t, "all 1", "rest 1 after 5s", "all 2")
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := Open(t.Context(), routes(script(new(log), "a", sluice.RetryAfter(time.Hour, errDown))), Options{Logger: quiet})
		mustSubmit(t, f, rec("x", 1))
		mustClose(t, f, 1)
		if d := time.Since(start); d != time.Hour {
			t.Errorf("settled after %v, want 1h", d)
		}
	})
}

func TestBackoffDoublesUpToItsLimitAndHoldsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times []time.Time
		m := routes(func(ctx context.Context, r *sluice.Record) error {
			if keyOf(r) == "good" {
				return nil
			}
			times = append(times, time.Now())
			return errDown
		})
		m.routes[0].Backoff, m.routes[0].MaxBackoff = time.Second, 10*time.Second
		f := Open(t.Context(), m, Options{Logger: quiet, Concurrency: 1})
		mustSubmit(t, f, rec("bad", 1))
		synctest.Wait()
		for i := range 100 {
			mustSubmit(t, f, rec("good", i+2)) // one slot, which the record in backoff does not have
			time.Sleep(5 * time.Second)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		if n, err := f.Close(ctx); n != 0 || err == nil {
			t.Errorf("Close = %d, %v", n, err)
		}
		longest := time.Duration(0)
		for i := 1; i < len(times); i++ {
			d := times[i].Sub(times[i-1])
			if limit := time.Second << min(i-1, 4); d > min(limit, 10*time.Second) {
				t.Errorf("retry %d came after %v, limit %v", i, d, limit)
			}
			longest = max(longest, d)
		}
		if len(times) < 50 || longest < 5*time.Second {
			t.Errorf("%d calls, the longest delay %v", len(times), longest)
		}
	})
}

func TestJitter(t *testing.T) {
	for _, c := range []struct {
		base, limit time.Duration
		n           int
		want        time.Duration
	}{
		{100 * time.Millisecond, 30 * time.Second, 0, 100 * time.Millisecond},
		{100 * time.Millisecond, 30 * time.Second, 3, 800 * time.Millisecond},
		{100 * time.Millisecond, 30 * time.Second, 20, 30 * time.Second},
		{100 * time.Millisecond, 30 * time.Second, 1000, 30 * time.Second},
		{time.Minute, 30 * time.Second, 0, 30 * time.Second},
	} {
		if got := backoff.Doubled(c.base, c.limit, c.n); got != c.want {
			t.Errorf("backoff.Doubled(%v, %v, %d) = %v, want %v", c.base, c.limit, c.n, got, c.want)
		}
		low, high := c.want, time.Duration(0)
		for range 1000 {
			d := jittered(backoff.Doubled(c.base, c.limit, c.n))
			low, high = min(low, d), max(high, d)
		}
		if low > c.want/10 || high < c.want*9/10 || high > c.want {
			t.Errorf("jittered(backoff.Doubled(%v, %v, %d)) is between %v and %v, want 0 to %v", c.base, c.limit, c.n, low, high, c.want)
		}
	}
}

func TestPanicAndGoexitAreTheRecordsError(t *testing.T) {
	for name, crash := range map[string]func(){
		"panic: boom":    func() { panic("boom") },
		"runtime.Goexit": runtime.Goexit,
		"nil func":       func() { var f func(); f() }, //nolint:govet // the panic is wanted
		"panic with nil": func() { panic(nil) },        //nolint:govet // the panic is wanted
		"panic: skipped": func() { panic(sluice.Skip("a panic is no outcome")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var err error
				var l log
				crashes := 2
				m := routes(func(ctx context.Context, r *sluice.Record) error {
					if crashes--; crashes >= 0 {
						explode(crash)
					}
					return nil
				}, script(&l, "b"))
				f := Open(t.Context(), m, Options{Logger: quiet, Concurrency: 1, Hooks: Hooks{
					Handled: func(_ context.Context, _ *sluice.Record, _ *sluice.Route, r Result, _ time.Duration, e error) {
						if r == Retried {
							err = e
						}
					},
				}})
				mustSubmit(t, f, recs("x", "y")...)
				mustClose(t, f, 2)
				var p *outcomes.Panic
				if !errors.As(err, &p) || !strings.Contains(string(p.Stack), "explode") || !strings.Contains(err.Error(), string(p.Stack)) {
					t.Errorf("error %v has no stack of the handler", err)
				}
				if len(l.all()) != 2 {
					t.Errorf("the other route was called with %q", l.all())
				}
			})
		})
	}
}

//go:noinline
func explode(f func()) { f() }

func TestPanicInMatchIsPermanent(t *testing.T) {
	for name, crash := range map[string]func(){
		"panic":  func() { panic("boom") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, d := routes(ok), &letters{}
				m.pick = func(r *sluice.Record) ([]int, error) {
					if keyOf(r) == "bad" {
						explode(crash)
					}
					return []int{0}, nil
				}
				f := Open(t.Context(), m, Options{Logger: quiet, DeadLetter: d})
				mustSubmit(t, f, recs("bad", "good")...)
				mustClose(t, f, 2)
				d.want(t, " 1 0")
				if !strings.Contains(d.failures[0].Last.Error(), "explode") {
					t.Errorf("no stack in %v", d.failures[0].Last)
				}
			})
		})
	}
}

func TestJudge(t *testing.T) {
	skip := sluice.Skip("x")
	for _, c := range []struct {
		name      string
		err       error
		skip      bool
		permanent bool
		after     time.Duration
		rest      bool
	}{
		{name: "plain", err: errDown},
		{name: "skip", err: skip, skip: true},
		{name: "wrapped skip", err: fmt.Errorf("so: %w", skip), skip: true},
		{name: "skip joined with an error", err: errors.Join(skip, errDown)},
		{name: "two errors wrapped", err: fmt.Errorf("%w and %w", skip, errDown)},
		{name: "skip to be retried", err: sluice.RetryAfter(time.Second, skip), after: time.Second},
		{name: "permanent skip", err: sluice.Permanent(skip), permanent: true},
		{name: "remaining skip", err: &sluice.Remaining{Rest: ok, Err: skip}, rest: true},
		{name: "wrapped permanent", err: fmt.Errorf("so: %w", sluice.Permanent(errDown)), permanent: true},
		{name: "remaining without a rest", err: &sluice.Remaining{Err: errDown, After: time.Second}, after: time.Second},
		{name: "remaining, permanent", err: &sluice.Remaining{Rest: ok, Err: sluice.Permanent(errDown)}, rest: true, permanent: true},
		{name: "remaining, the later delay", err: &sluice.Remaining{Rest: ok, After: time.Second, Err: sluice.RetryAfter(time.Minute, errDown)}, rest: true, after: time.Minute},
		{name: "remaining without an error", err: &sluice.Remaining{Rest: ok}, rest: true},
	} {
		v := judge(c.err)
		if (v.kind == skipped) != c.skip || (v.kind == permanent) != c.permanent || v.after != c.after || (v.rest != nil) != c.rest {
			t.Errorf("%s: %+v", c.name, v)
		}
		_ = v.err.Error()
	}
}

// hostile panics whenever it is looked at.
type hostile struct{}

func (*hostile) Error() string { panic("Error") }
func (*hostile) Unwrap() error { panic("Unwrap") }
func (*hostile) Is(error) bool { panic("Is") }
func (*hostile) As(any) bool   { panic("As") }

func TestAnErrorThatPanicsIsTheRecordsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		f := Open(t.Context(), routes(script(&l, "a", nil)), Options{Logger: quiet})
		mustClose(t, f, 0)
		fails := 1
		f = Open(t.Context(), routes(func(context.Context, *sluice.Record) error {
			if fails--; fails >= 0 {
				return &hostile{}
			}
			return nil
		}), Options{Logger: quiet})
		mustSubmit(t, f, rec("x", 1))
		mustClose(t, f, 1)
	})
}

func TestTimeoutKeepsTheLaneUntilTheHandlerReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		start := time.Now()
		m := routes(func(ctx context.Context, r *sluice.Record) error {
			<-ctx.Done()
			l.add("%d cancelled after %v", nth(r), time.Since(start))
			time.Sleep(time.Minute) // does not obey
			l.add("%d returned after %v", nth(r), time.Since(start))
			return nil
		})
		m.routes[0].Timeout = time.Second
		f := Open(t.Context(), m, Options{Logger: quiet})
		mustSubmit(t, f, recs("x", "x")...)
		mustClose(t, f, 2)
		l.want(t, "1 cancelled after 1s", "1 returned after 1m1s", "2 cancelled after 1m2s", "2 returned after 2m2s")
	})
}

func TestRecordIsCopiedOutOfItsPageWhenItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := []byte(`{"eventName":"INSERT","dynamodb":{"Keys":{"pk":{"S":"abc"}},"SequenceNumber":"` + string(recordtest.Sequence(42)) + `"}}`)
		r := sluice.DecodeRecord(page)
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		var seen []string
		f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
			seen = append(seen, keyOf(r))
			if len(seen) == 1 {
				return errDown
			}
			return nil
		}), Options{Logger: quiet})
		mustSubmit(t, f, *r)
		synctest.Wait()
		clear(page)
		mustClose(t, f, 1)
		if fmt.Sprint(seen) != "[abc abc]" {
			t.Errorf("handler saw %q", seen)
		}
	})
}

func TestOneFailureASecondIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		logger := slog.New(slog.NewTextHandler(&out, nil))
		fails := func(context.Context, *sluice.Record) error { return sluice.RetryAfter(10*time.Second, errDown) }
		f := Open(t.Context(), routes(fails), Options{Logger: logger, Concurrency: 1})
		mustSubmit(t, f, rec("x", 1), rec("x", 2), rec("y", 3), rec("z", 4)) // 2 waits behind 1
		synctest.Wait()
		time.Sleep(11 * time.Second)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f.Close(ctx)
		var lines []string
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "will be tried again") {
				lines = append(lines, line)
			}
		}
		if len(lines) != 2 || !strings.Contains(lines[0], "sequence="+string(recordtest.Sequence(1))+" ") || !strings.Contains(lines[0], "unlogged=0") || !strings.Contains(lines[1], "unlogged=2") {
			t.Errorf("logged:\n%s", strings.Join(lines, ""))
		}
	})
}

// What waits behind a failing or a slow record of its item is few records of
// many pages: they do not pin them.
func TestRecordsBehindAHeldOneAreCopiedOutOfTheirPages(t *testing.T) {
	for _, slow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var seen []string
			calls := 0
			f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
				if calls++; calls == 1 {
					time.Sleep(10 * time.Second)
					if !slow {
						return sluice.RetryAfter(time.Hour, errDown)
					}
					time.Sleep(time.Hour)
				}
				seen = append(seen, keyOf(r))
				return nil
			}), Options{Logger: quiet})
			var pages [][]byte
			for i := range 4 {
				page := fmt.Appendf(nil, `{"eventName":"INSERT","dynamodb":{"Keys":{"pk":{"S":"abc"}},"SequenceNumber":%q}}`, recordtest.Sequence(i+1))
				mustSubmit(t, f, *sluice.DecodeRecord(page))
				pages = append(pages, page)
				time.Sleep(8 * time.Second) // the second is there before the first fails
			}
			time.Sleep(10 * time.Second)
			for _, page := range pages[1:] {
				clear(page)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
			defer cancel()
			if n, err := f.Close(ctx); n != 4 {
				t.Errorf("Close = %d, %v", n, err)
			}
			if fmt.Sprint(seen) != "[abc abc abc abc]" {
				t.Errorf("slow %v: handler saw %q", slow, seen)
			}
		})
	}
}

// Retries that hang to their Timeout leave most slots to others.
func TestRetriesLeaveSlotsToOthers(t *testing.T) {
	const (
		hangs = 20 * time.Second
		slots = 8
		bad   = 5 * slots
	)
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(8 * time.Minute)
		var slowest time.Duration
		var mu sync.Mutex
		due := map[string]time.Time{}
		f := Open(t.Context(), routes(func(_ context.Context, r *sluice.Record) error {
			switch {
			case !strings.HasPrefix(keyOf(r), "bad"):
				mu.Lock()
				slowest = max(slowest, time.Since(due[keyOf(r)]))
				mu.Unlock()
			case time.Now().Before(until):
				time.Sleep(hangs)
				return errors.New("timed out")
			}
			return nil
		}), Options{Logger: quiet, Concurrency: slots})
		n := uint64(0)
		for i := 0; time.Now().Before(until); i++ {
			if i%40 == 0 && i < 40*bad {
				mustSubmit(t, f, rec(fmt.Sprint("bad", i), int(n)+1))
				n++
			}
			good := fmt.Sprint("good", i)
			mu.Lock()
			due[good] = time.Now()
			mu.Unlock()
			mustSubmit(t, f, rec(good, int(n)+1))
			n++
			time.Sleep(100 * time.Millisecond)
		}
		mustClose(t, f, n)
		if slowest > time.Second {
			t.Errorf("a record waited %v for a slot", slowest)
		}
	})
}
