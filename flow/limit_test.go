package flow

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// gauge measures how many run at once.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) during(d time.Duration) {
	n := g.now.Add(1)
	for m := g.most.Load(); n > m && !g.most.CompareAndSwap(m, n); m = g.most.Load() {
	}
	time.Sleep(d)
	g.now.Add(-1)
}

func many(prefix string, n int) (out []sluice.Record) {
	for i := range n {
		out = append(out, rec(fmt.Sprint(prefix, i), i+1))
	}
	return out
}

func TestConcurrencyOfTheFlow(t *testing.T) {
	for _, c := range []struct {
		o    Options
		keys int
		want int64
	}{
		{Options{}, 1000, defaultConcurrency},
		{Options{Concurrency: 7}, 1000, 7},
		{Options{Concurrency: 7}, 3, 3},
		{Options{Order: ByShard}, 1000, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var g gauge
			c.o.Logger = quiet
			f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error { g.during(time.Second); return nil }), c.o)
			for i := range 100 {
				mustSubmit(t, f, rec(fmt.Sprint(i%c.keys), i))
			}
			mustClose(t, f, 100)
			if n := g.most.Load(); n != c.want {
				t.Errorf("%+v, %d items: %d at once, want %d", c.o, c.keys, n, c.want)
			}
		})
	}
}

func TestRouteConcurrencyIsSharedByFlowsAndTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limited, free gauge
		m := routes(
			func(context.Context, *sluice.Record) error { limited.during(time.Second); return nil },
			func(context.Context, *sluice.Record) error { free.during(time.Second); return nil },
		)
		m.pick = func(r *sluice.Record) ([]int, error) {
			if keyOf(r)[0] == 'l' {
				return []int{0}, nil
			}
			return []int{1}, nil
		}
		m.routes[0].Concurrency = 3
		o := Options{Logger: quiet, Concurrency: 10, Group: NewGroup(m)}
		f, g := Open(t.Context(), m, o), Open(t.Context(), m, o)
		start := time.Now()
		mustSubmit(t, f, many("l", 30)...)
		mustSubmit(t, g, many("l", 30)...)
		synctest.Wait()
		mustSubmit(t, f, many("x", 70)...) // three of f's ten slots are taken at most
		for f.Settled() < 10 {
			<-f.Changed()
		}
		mustClose(t, f, 100)
		mustClose(t, g, 30)
		if took := time.Since(start); took != 20*time.Second {
			t.Errorf("60 records, three at a time for 1 s, took %v", took)
		}
		if limited.most.Load() != 3 || free.most.Load() < 7 {
			t.Errorf("at once: %d limited, %d others", limited.most.Load(), free.most.Load())
		}
	})
}

// A permit that waits for a slot of one flow would keep the route from the others.
func TestAFlowWithoutSlotsDoesNotKeepPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var l log
		m := routes(
			func(_ context.Context, r *sluice.Record) error {
				l.add("%s", keyOf(r))
				time.Sleep(time.Second)
				return nil
			},
			func(context.Context, *sluice.Record) error { <-hang; return nil },
		)
		m.pick = func(r *sluice.Record) ([]int, error) {
			if keyOf(r)[0] == 'l' {
				return []int{0}, nil
			}
			return []int{1}, nil
		}
		m.routes[0].Concurrency = 1
		o := Options{Logger: quiet, Concurrency: 2, Group: NewGroup(m)}
		f, g := Open(t.Context(), m, o), Open(t.Context(), m, o)
		mustSubmit(t, f, rec("l1", 1))
		synctest.Wait()
		mustSubmit(t, f, rec("l2", 2))
		synctest.Wait() // l1 runs, l2 waits at the gate
		mustSubmit(t, f, rec("h1", 3))
		mustSubmit(t, g, rec("l3", 1))
		synctest.Wait()
		mustSubmit(t, f, rec("h2", 4), rec("h3", 5))
		time.Sleep(2500 * time.Millisecond) // all slots of f hang
		mustClose(t, g, 1)
		l.want(t, "l1", "l3")
		close(hang)
		mustClose(t, f, 5)
		l.want(t, "l1", "l3", "l2")
	})
}

func TestRouteLimitsAreFirstInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		m := routes(func(ctx context.Context, r *sluice.Record) error { l.add("%d", nth(r)); return nil })
		m.routes[0].Rate = 10
		f := Open(t.Context(), m, Options{Logger: quiet, Concurrency: 1})
		start := time.Now()
		mustSubmit(t, f, many("x", 50)...)
		mustClose(t, f, 50)
		if took := time.Since(start); took < 4900*time.Millisecond || took > 4901*time.Millisecond {
			t.Errorf("50 calls at 10 a second took %v", took)
		}
		got := l.all()
		for i, s := range got {
			if s != fmt.Sprint(i+1) {
				t.Fatalf("order %q", got)
			}
		}
	})
}

func TestRateAndBurst(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		burst int
		pause time.Duration
		n     int
		want  time.Duration
	}{
		{rate: 10, n: 11, want: time.Second},
		{rate: 10, burst: 5, n: 15, want: time.Second},
		{rate: 0.1, n: 2, want: 10 * time.Second},
		{rate: 3, burst: 1, n: 31, want: 10 * time.Second},
		{rate: 10, burst: 5, pause: time.Hour, n: 15, want: time.Second}, // no more than burst is saved up
	} {
		synctest.Test(t, func(t *testing.T) {
			m := routes(ok)
			m.routes[0].Rate, m.routes[0].Burst = c.rate, c.burst
			f := Open(t.Context(), m, Options{Logger: quiet})
			time.Sleep(c.pause)
			start := time.Now()
			mustSubmit(t, f, many("x", c.n)...)
			mustClose(t, f, uint64(c.n))
			if took := time.Since(start); took < c.want-time.Millisecond || took > c.want+time.Millisecond {
				t.Errorf("%+v took %v", c, took)
			}
		})
	}
}

func TestGroupIsSafeForConcurrentFlows(t *testing.T) {
	m := routes(ok, ok)
	m.routes[0].Concurrency, m.routes[1].Rate, m.routes[1].Burst = 2, 1e6, 100
	o := Options{Logger: quiet, Concurrency: 4, Group: NewGroup(m)}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			f := Open(t.Context(), m, o)
			mustSubmit(t, f, many("x", 300)...)
			mustClose(t, f, 300)
		})
	}
	wg.Wait()
}
