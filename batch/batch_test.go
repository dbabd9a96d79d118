package batch

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/sluicehq/sluice/internal/tally"
)

const rtt = 10 * time.Millisecond

// recorder is a commit function that notes its items.
type recorder struct {
	mu      sync.Mutex
	commits [][]int
}

func (r *recorder) commit(_ context.Context, items []int) []error {
	r.mu.Lock()
	r.commits = append(r.commits, slices.Clone(items))
	r.mu.Unlock()
	time.Sleep(rtt)
	return nil
}

func (r *recorder) expect(t *testing.T, want ...[]int) {
	t.Helper()
	if !reflect.DeepEqual(r.commits, want) {
		t.Errorf("commits %v, want %v", r.commits, want)
	}
}

func TestLingerWithoutAScope(t *testing.T) {
	for _, c := range []struct{ linger, want time.Duration }{{0, 2 * time.Millisecond}, {time.Second, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			var r recorder
			b := New(r.commit, nil, Options{Linger: c.linger})
			start := time.Now()
			var wg sync.WaitGroup
			for i := range 3 {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond / 2)
					if err := b.Do(t.Context(), i); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			r.expect(t, []int{0, 1, 2})
			if took := time.Since(start); took != c.want+rtt {
				t.Errorf("took %v, want the linger of %v and a round trip", took, c.want)
			}
		})
	}
}

// A batch that cannot grow is sent at once: the linger is an hour here.
func TestFullBatchesAreSentAtOnce(t *testing.T) {
	size := func(i int) int { return i }
	for _, c := range []struct {
		name  string
		o     Options
		items []int
		want  [][]int
	}{
		{"by items", Options{MaxItems: 2}, []int{1, 2, 3, 4}, [][]int{{1, 2}, {3, 4}}},
		{"by bytes, exactly", Options{MaxBytes: 10}, []int{4, 6, 10}, [][]int{{4, 6}, {10}}},
		{"the next does not fit", Options{MaxBytes: 10}, []int{4, 3, 7, 3}, [][]int{{4, 3}, {7, 3}}},
		{"larger than the limit: alone", Options{MaxBytes: 10}, []int{1, 99, 2, 8}, [][]int{{1}, {99}, {2, 8}}},
		{"both", Options{MaxItems: 3, MaxBytes: 10}, []int{1, 1, 1, 5, 5}, [][]int{{1, 1, 1}, {5, 5}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r recorder
				c.o.Linger = time.Hour
				b := New(r.commit, size, c.o)
				start := time.Now()
				var wg sync.WaitGroup
				for _, item := range c.items {
					wg.Go(func() { b.Do(t.Context(), item) })
					synctest.Wait() // they join in this order
				}
				wg.Wait()
				slices.SortFunc(r.commits, func(a, b []int) int { // they ran at once
					return slices.Index(c.items, a[0]) - slices.Index(c.items, b[0])
				})
				r.expect(t, c.want...)
				if took := time.Since(start); took != rtt {
					t.Errorf("took %v, want one round trip", took)
				}
			})
		})
	}
}

func TestDueBatchGrowsUntilASlotIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		b := New(r.commit, nil, Options{MaxItems: 4, InFlight: 1, Linger: time.Millisecond})
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() { b.Do(t.Context(), i) })
			synctest.Wait()
			if i < 3 {
				time.Sleep(2 * time.Millisecond) // 1 is due long before the slot is free, and takes 2, 3 and 4
			}
		}
		wg.Wait()
		r.expect(t, []int{0}, []int{1, 2, 3, 4}, []int{5, 6, 7, 8}, []int{9})
	})
}

func TestEachIsReleasedWhenItsCommitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(func(_ context.Context, items []int) []error {
			time.Sleep(time.Duration(items[0]) * time.Second)
			errs := make([]error, len(items))
			for i, item := range items {
				errs[i] = fmt.Errorf("error of %d", item)
			}
			return errs
		}, nil, Options{MaxItems: 2})
		start := time.Now()
		var wg sync.WaitGroup
		for _, item := range []int{9, 1, 2, 3} { // commits of 9 s and 2 s
			wg.Go(func() {
				err := b.Do(t.Context(), item)
				if want := fmt.Sprintf("error of %d", item); err == nil || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
				want := 9 * time.Second
				if item == 2 || item == 3 {
					want = 2 * time.Second
				}
				if took := time.Since(start); took != want {
					t.Errorf("item %d released after %v, want %v", item, took, want)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

func TestCommitThatDoesNotAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		commit func(context.Context, []int) []error
		want   string
	}{
		{"panic", func(context.Context, []int) []error { panic("broken") }, "batch: the commit function panicked: broken\n"},
		{"nil panic", func(context.Context, []int) []error { panic(nil) }, "batch: the commit function panicked: "}, //nolint:govet // a commit may do so
		{"Goexit", func(context.Context, []int) []error { runtime.Goexit(); return nil }, "batch: the commit function ended its goroutine (runtime.Goexit)"},
		{"too few", func(context.Context, []int) []error { return make([]error, 1) }, "batch: the commit function answered 2 items with 1 errors"},
		{"none, but not nil", func(context.Context, []int) []error { return []error{} }, "batch: the commit function answered 2 items with 0 errors"},
		{"too many", func(context.Context, []int) []error { return make([]error, 3) }, "batch: the commit function answered 2 items with 3 errors"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(c.commit, nil, Options{MaxItems: 2, InFlight: 1})
				for range 2 { // the slot is free again
					answered := 0
					var mu sync.Mutex
					var wg sync.WaitGroup
					for i := range 2 {
						wg.Go(func() {
							err := b.Do(t.Context(), i)
							mu.Lock()
							answered++
							mu.Unlock()
							if err == nil || !strings.HasPrefix(err.Error(), c.want) {
								t.Errorf("got %v, want %s", err, c.want)
							}
						})
					}
					wg.Wait()
					want := 2
					if c.name == "Goexit" {
						want = 1 // the other ran the commit and ended with it
					}
					if answered != want {
						t.Errorf("%d callers answered, want %d", answered, want)
					}
				}
			})
		})
	}
}

func TestPanicShowsItsStack(t *testing.T) {
	b := New(func(context.Context, []int) []error { panic("broken") }, nil, Options{MaxItems: 1})
	if err := b.Do(t.Context(), 1); !strings.Contains(err.Error(), "batch_test.go:") {
		t.Errorf("no stack in %v", err)
	}
}

var errReason = errors.New("reason")

func TestDoAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		running := false
		b := New(func(ctx context.Context, items []int) []error {
			if running {
				t.Error("two commits of one caller at once")
			}
			running = true
			r.commit(ctx, items)
			running = false
			if i := slices.Index(items, 3); i >= 0 {
				errs := make([]error, len(items))
				errs[i] = errors.New("three")
				return errs
			}
			return nil
		}, nil, Options{MaxItems: 3, Linger: time.Millisecond})

		if errs := b.DoAll(t.Context(), nil); errs != nil {
			t.Errorf("no items: %v", errs)
		}
		r.expect(t)
		if errs := b.DoAll(t.Context(), []int{10, 11}); errs != nil {
			t.Errorf("all durable: %v, want nil", errs)
		}
		var wg sync.WaitGroup
		wg.Go(func() { b.Do(t.Context(), 0) }) // leaves room for two
		synctest.Wait()
		errs := b.DoAll(t.Context(), []int{1, 2, 3, 4, 5, 6})
		wg.Wait()
		r.expect(t, []int{10, 11}, []int{0, 1, 2}, []int{3, 4, 5}, []int{6})
		for i, err := range errs {
			if (i == 2) != (err != nil) {
				t.Errorf("error %d is %v", i, err)
			}
		}
		if len(errs) != 6 {
			t.Errorf("%d errors for 6 items", len(errs))
		}
	})
}

// Only a commit with room waits for others. Of several commits of a call that is the
// last, unless its caller asks not to wait.
func TestDoAllWaitsForOthersOnlyWithRoomLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		b := New(r.commit, nil, Options{MaxItems: 3, Linger: time.Hour})
		took := func(do func(context.Context, []int) []error, items ...int) time.Duration {
			start := time.Now()
			if errs := do(t.Context(), items); errs != nil {
				t.Error(errs)
			}
			return time.Since(start)
		}
		if took := took(b.DoAll, 1, 2, 3, 4); took != time.Hour+2*rtt {
			t.Errorf("took %v, want one linger and two round trips", took)
		}
		if took := took(b.DoAllNow, 1, 2, 3, 4); took != 2*rtt {
			t.Errorf("now: took %v, want two round trips", took)
		}
		sized := New(r.commit, func(i int) int { return i }, Options{MaxBytes: 10, Linger: time.Hour})
		if took := took(sized.DoAll, 9, 9, 10); took != 3*rtt {
			t.Errorf("by bytes: took %v, want three round trips", took)
		}
		r.expect(t, []int{1, 2, 3}, []int{4}, []int{1, 2, 3}, []int{4}, []int{9}, []int{9}, []int{10})
	})
}

// A size func that panics is its caller's own misfortune.
func TestPanicOfTheSizeFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		b := New(r.commit, func(i int) int { return 10 / i }, Options{MaxItems: 2, InFlight: 1})
		for _, call := range []func(){
			func() { b.Do(t.Context(), 0) },
			func() { b.DoAll(t.Context(), []int{5, 0}) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
				}()
				call()
			}()
		}
		if err := b.Do(t.Context(), 1); err != nil {
			t.Error(err)
		}
		r.expect(t, []int{1})
	})
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got tally.Tally
		b := New(func(_ context.Context, items []int) []error {
			time.Sleep(rtt)
			switch items[0] {
			case 1:
				return []error{nil, errors.New("one")}
			case 3:
				panic("all")
			}
			return nil
		}, nil, Options{MaxItems: 2, Metrics: &got, Sink: "mine"})
		b.DoAll(t.Context(), []int{1, 2, 3, 4, 5})
		if sizes := got.Values("sluice_commit_batch_items", "mine"); !slices.Equal(sizes, []float64{2, 2, 1}) {
			t.Errorf("sizes %v", sizes)
		}
		if took, each := got.Values("sluice_commit_seconds", "mine"), rtt.Seconds(); !slices.Equal(took, []float64{each, each, each}) {
			t.Errorf("took %v", took)
		}
		if items := got.By("sluice_commit_items_total"); items["mine,committed"] != 2 || items["mine,failed"] != 3 || got.Sum("CommitFailures") != 3 {
			t.Errorf("items %v", items)
		}
	})
}

func TestPanicOfAMeterReleasesTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		b := New(r.commit, nil, Options{MaxItems: 2, InFlight: 1, Metrics: tally.Func(func(string, string, float64) { panic("meter") })})
		panics := 0
		var mu sync.Mutex
		for range 2 {
			var wg sync.WaitGroup
			for i := range 2 {
				wg.Go(func() {
					defer func() {
						if recover() != nil {
							mu.Lock()
							panics++
							mu.Unlock()
						}
					}()
					if err := b.Do(t.Context(), i); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		if panics != 2 {
			t.Errorf("%d of 2 panics seen", panics)
		}
	})
}

// After an item is durable, the Batcher and slow callers no longer keep it in memory.
func TestItemsAreReleased(t *testing.T) {
	type item struct{ body [1 << 10]byte }
	synctest.Test(t, func(t *testing.T) {
		b := New(func(_ context.Context, items []*item) []error { return make([]error, len(items)) },
			func(i *item) int { return len(i.body) }, Options{MaxItems: 7, Linger: time.Millisecond})
		var mu sync.Mutex
		var refs []weak.Pointer[item]
		fresh := func() *item {
			i := new(item)
			mu.Lock()
			refs = append(refs, weak.Make(i))
			mu.Unlock()
			return i
		}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { b.Do(t.Context(), fresh()) })
			wg.Go(func() { b.DoAll(t.Context(), []*item{fresh(), fresh()}) })
		}
		withdrawn, cancel := context.WithCancel(t.Context())
		wg.Go(func() { b.Do(withdrawn, fresh()) })
		cancel()
		wg.Wait()
		wait, leave := make(chan struct{}), make(chan struct{})
		b.mu.Lock()
		kept := b.groupFor(0)
		kept.join(t.Context(), nil)
		kept.add(0, fresh(), 0)
		kept.joined()
		b.mu.Unlock()
		wg.Go(func() { kept.wait(t.Context(), nil, 0); close(wait); <-leave; runtime.KeepAlive(kept) })
		<-wait
		runtime.GC()
		for i, ref := range refs {
			if ref.Value() != nil {
				t.Errorf("item %d of %d is still reachable", i, len(refs))
			}
		}
		close(leave)
		wg.Wait()
		runtime.KeepAlive(b)
	})
}

func TestOptionsAreValidated(t *testing.T) {
	commit := func(context.Context, []int) []error { return nil }
	size := func(int) int { return 1 }
	for _, c := range []struct {
		o      Options
		size   func(int) int
		commit func(context.Context, []int) []error
		want   string
	}{
		{Options{MaxItems: -1}, nil, commit, "batch: Options.MaxItems is -1; allowed are 0 (100) and above"},
		{Options{MaxBytes: -1}, size, commit, "batch: Options.MaxBytes is -1; allowed are 0 (no limit) and above"},
		{Options{MaxBytes: 9}, nil, commit, "batch: Options.MaxBytes is 9, but there is no size function to count with"},
		{Options{InFlight: -1}, nil, commit, "batch: Options.InFlight is -1; allowed are 0 (4) and above"},
		{Options{Timeout: -1}, nil, commit, "batch: Options.Timeout is -1ns; allowed are 0 (30s) and above"},
		{Options{}, nil, nil, "batch: New needs a commit function"},
	} {
		func() {
			defer func() {
				if got := recover(); got != c.want {
					t.Errorf("panic %v, want %s", got, c.want)
				}
			}()
			New(c.commit, c.size, c.o)
		}()
	}
	want := Options{MaxItems: 100, InFlight: 4, Linger: 2 * time.Millisecond, Timeout: 30 * time.Second, Sink: "batch"}
	if got := New(commit, nil, Options{}).opt; !reflect.DeepEqual(got, want) {
		t.Errorf("defaults %+v, want %+v", got, want)
	}
}
