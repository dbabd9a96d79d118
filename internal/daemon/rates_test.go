package daemon

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/page"
	"github.com/sluicehq/sluice/router"
)

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := router.New()
		for _, name := range []string{"a", "b"} {
			m.Handle("*#*", func(context.Context, *sluice.Record) error { return nil }, router.Name(name))
		}
		s := newRates(m)
		ctx, cancel := context.WithCancel(t.Context())
		go s.run(ctx)
		b := m.Routes()[1]
		for i := range 100 {
			took := 10 * time.Millisecond
			if i < 2 {
				took = time.Second
			}
			s.handled(context.Background(), nil, b, flow.Done, took, nil)
		}
		for _, r := range []flow.Result{flow.Skipped, flow.Retried, flow.Parked, flow.Unrouted} {
			s.handled(context.Background(), nil, b, r, 10*time.Millisecond, nil)
		}
		s.handled(context.Background(), nil, nil, flow.Unrouted, 0, nil)
		if len(s.of(1)) != 0 {
			t.Errorf("before a point has ended: %v", s.of(1))
		}
		time.Sleep(page.PointEvery)
		synctest.Wait()
		got := s.of(1)
		if len(got) != 1 || len(s.of(0)) != 1 || s.of(0)[0] != (page.Point{}) {
			t.Fatalf("%v, %v", s.of(0), got)
		}
		p := got[0]
		if p.Done != 100 || p.Skipped != 1 || p.Failed != 1 || p.Parked != 1 || math.Abs(float64(p.P50)-.01) > .0015 || math.Abs(float64(p.P99)-1) > .15 || math.Abs(p.Rate()-103./30) > 1e-9 {
			t.Errorf("%+v", p)
		}
		// An hour later the first point is gone.
		time.Sleep(time.Second) // not at the end of a point
		for range page.PointCount {
			s.handled(context.Background(), nil, b, flow.Done, time.Millisecond, nil)
			time.Sleep(page.PointEvery)
		}
		synctest.Wait()
		if got := s.of(1); len(got) != page.PointCount || got[0].Done != 1 || got[page.PointCount-1].Done != 1 {
			t.Errorf("%d points, the first %+v", len(got), got[0])
		}
		cancel()
		synctest.Wait()
	})
}

// A duration is in the bucket whose middle is at most an eighth away.
func TestBuckets(t *testing.T) {
	last := 0
	for took := 2 * time.Microsecond; took < time.Minute; took += took/7 + 1 {
		i := bucketOf(took)
		if got := float64(middle(i)) / took.Seconds(); i < last || got < .85 || got > 1.15 {
			t.Fatalf("%v: bucket %d after %d, which stands for %v", took, i, last, middle(i))
		}
		last = i
	}
	for took, want := range map[time.Duration]int{-1: 0, 0: 0, 100: 0, time.Hour: tookBuckets - 1, math.MaxInt64: tookBuckets - 1} {
		if got := bucketOf(took); got != want {
			t.Errorf("%v: %d, want %d", took, got, want)
		}
	}
}

func BenchmarkRates(b *testing.B) {
	m := router.New()
	m.Handle("*#*", func(context.Context, *sluice.Record) error { return nil })
	h := newRates(m)
	route := m.Routes()[0]
	for b.Loop() {
		h.handled(context.Background(), nil, route, flow.Done, time.Millisecond, nil)
	}
}
