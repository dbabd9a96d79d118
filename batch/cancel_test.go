package batch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestCommitContext(t *testing.T) {
	type key struct{}
	const timeout = time.Minute
	for _, c := range []struct {
		name    string
		callers []time.Duration // their deadlines from now, 0 is none; the first leads
		want    time.Duration
	}{
		{"no deadlines", []time.Duration{0, 0}, timeout},
		{"the latest", []time.Duration{time.Second, 3 * time.Second, 2 * time.Second}, 3 * time.Second},
		{"one without", []time.Duration{time.Second, 0}, timeout},
		{"later than the timeout", []time.Duration{time.Second, time.Hour}, timeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				b := New(func(ctx context.Context, items []int) []error {
					if ctx.Value(key{}) != nil {
						t.Error("the commit sees a caller's value")
					}
					<-ctx.Done()
					if took := time.Since(start); took != c.want {
						t.Errorf("the commit's context ended after %v, want %v", took, c.want)
					}
					return nil
				}, nil, Options{MaxItems: len(c.callers), Timeout: timeout})
				var wg sync.WaitGroup
				for i, d := range c.callers {
					ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, i))
					defer cancel()
					if d > 0 {
						ctx, cancel = context.WithDeadline(ctx, start.Add(d))
						defer cancel()
					}
					wg.Go(func() {
						if err := b.Do(ctx, i); err != nil {
							t.Errorf("caller %d: %v", i, err)
						}
					})
				}
				wg.Wait()
			})
		})
	}
}

// A withdrawn item does not limit the deadline.
func TestCommitContextWithoutTheWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		b := New(func(ctx context.Context, _ []int) []error {
			if d, _ := ctx.Deadline(); d.Sub(start) != time.Second {
				t.Errorf("the commit may take %v", d.Sub(start))
			}
			return nil
		}, nil, Options{Timeout: time.Minute})
		gone, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { b.Do(gone, 1) })
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := b.Do(ctx, 2); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
	})
}

func TestCancelledBeforeSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		b := New(r.commit, func(i int) int { return i }, Options{MaxBytes: 1000, Linger: time.Second})
		ctxs := make([]context.Context, 6)
		cancels := make([]context.CancelCauseFunc, 6)
		var wg sync.WaitGroup
		for i := range ctxs {
			ctxs[i], cancels[i] = context.WithCancelCause(t.Context())
			defer cancels[i](nil)
			wg.Go(func() {
				var err error
				if i == 3 {
					err = errors.Join(b.DoAll(ctxs[i], []int{30, 31, 32})...)
				} else {
					err = b.Do(ctxs[i], 10*i)
				}
				if gone := i == 0 || i == 3 || i == 5; gone != errors.Is(err, errReason) || !gone && err != nil {
					t.Errorf("caller %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		for _, i := range []int{3, 0, 5} { // several of one caller, the first, the last
			cancels[i](errReason)
		}
		synctest.Wait()
		b.mu.Lock()
		if b.open.bytes != 70 {
			t.Errorf("%d bytes counted for 10, 20 and 40", b.open.bytes)
		}
		b.mu.Unlock()
		wg.Wait()
		r.expect(t, []int{10, 20, 40})
	})
}

// The batch that lost its callers must not be sent, and not hold its place.
func TestAllCancelledBeforeSending(t *testing.T) {
	for _, state := range []string{"open", "due", "full"} {
		t.Run(state, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r recorder
				o := Options{MaxItems: 2, InFlight: 1, Linger: time.Hour}
				if state == "due" {
					o = Options{MaxItems: 3, InFlight: 1, Linger: rtt / 10}
				}
				b := New(r.commit, nil, o)
				var wg sync.WaitGroup
				if state != "open" {
					wg.Go(func() { b.DoAll(t.Context(), []int{1, 2}) }) // holds the slot
					time.Sleep(rtt / 2)
				}
				ctx, cancel := context.WithTimeout(t.Context(), rtt/4)
				defer cancel()
				n := 2
				if state == "open" {
					n = 1
				}
				for range n {
					wg.Go(func() {
						if err := b.Do(ctx, 3); !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("got %v", err)
						}
					})
				}
				time.Sleep(rtt / 3)
				b.mu.Lock()
				if b.open != nil || len(b.ready) != 0 {
					t.Errorf("open %v, %d ready after all have left", b.open != nil, len(b.ready))
				}
				b.mu.Unlock()
				wg.Go(func() { b.DoAll(t.Context(), []int{4, 5}) })
				wg.Wait()
				want := [][]int{{1, 2}, {4, 5}}
				if state == "open" {
					want = want[1:]
				}
				r.expect(t, want...)
			})
		})
	}
}

func TestCancelledWhileSendingGetsTheTrueResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := errors.New("second failed")
		b := New(func(ctx context.Context, items []int) []error {
			time.Sleep(time.Second)
			if ctx.Err() != nil {
				t.Error("a caller cancelled the commit")
			}
			return []error{nil, fails}
		}, nil, Options{MaxItems: 2})
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var wg sync.WaitGroup
		for i, want := range []error{nil, fails} {
			wg.Go(func() {
				if err := b.Do(ctx, i); err != want { //nolint:errorlint // the very error, not wrapped
					t.Errorf("item %d: %v, want %v", i, err, want)
				}
				if time.Since(start) != time.Second {
					t.Errorf("item %d returned after %v, before its commit ended", i, time.Since(start))
				}
			})
			synctest.Wait()
		}
		time.Sleep(time.Second / 2)
		cancel()
		wg.Wait()
	})
}

func TestCancelledBeforeTheCall(t *testing.T) {
	b := New(func(context.Context, []int) []error { t.Error("called"); return nil }, nil, Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errReason)
	if err := b.Do(ctx, 1); !errors.Is(err, errReason) {
		t.Errorf("Do: %v", err)
	}
	errs := b.DoAll(ctx, []int{1, 2})
	if len(errs) != 2 || !errors.Is(errs[0], errReason) || !errors.Is(errs[1], errReason) {
		t.Errorf("DoAll: %v", errs)
	}
}

func TestDoAllCancelledBetweenCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		b := New(r.commit, nil, Options{MaxItems: 2})
		ctx, cancel := context.WithTimeout(t.Context(), rtt+rtt/2)
		defer cancel()
		errs := b.DoAll(ctx, []int{1, 2, 3, 4, 5})
		r.expect(t, []int{1, 2}, []int{3, 4})
		for i, err := range errs {
			if gone := i == 4; gone != errors.Is(err, context.DeadlineExceeded) || !gone && err != nil {
				t.Errorf("error %d is %v", i, err)
			}
		}
	})
}
