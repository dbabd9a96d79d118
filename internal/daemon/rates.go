package daemon

import (
	"context"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/page"
)

// rates keep the last hour of each route for the page: 120 points, 3 KB.
type rates struct{ routes []routeRates } // by their index

type routeRates struct {
	name    string
	results [4]atomic.Uint32 // since the last point: see rateOf
	took    [tookBuckets]atomic.Uint32

	mu    sync.Mutex
	hour  [page.PointCount]page.Point // a ring
	ended int                         // points so far
}

// A bucket counts the calls up to a quarter longer than those of the bucket before: it
// is one of the four parts of a power of two, from 1 µs to a minute and more.
const (
	tookShift   = 10 // of nanoseconds: 1 µs
	tookBuckets = 4 * 27
)

func newRates(m sluice.Matcher) *rates {
	s := &rates{make([]routeRates, len(m.Routes()))}
	for i, r := range m.Routes() {
		s.routes[i].name = r.Name
	}
	return s
}

// inherit takes over the hour of routes with the same name.
func (s *rates) inherit(old *rates) {
	for i := range s.routes {
		for j := range old.routes {
			if r, before := &s.routes[i], &old.routes[j]; r.name == before.name {
				before.mu.Lock()
				r.hour, r.ended = before.hour, before.ended
				before.mu.Unlock()
			}
		}
	}
}

// handled counts a call: see flow.Hooks.
func (s *rates) handled(_ context.Context, _ *sluice.Record, route *sluice.Route, r flow.Result, took time.Duration, _ error) {
	if i := rateOf(r); route != nil && i >= 0 {
		of := &s.routes[route.Index]
		of.results[i].Add(1)
		of.took[bucketOf(took)].Add(1)
	}
}

func rateOf(r flow.Result) int {
	switch r {
	case flow.Done:
		return 0
	case flow.Skipped:
		return 1
	case flow.Retried, flow.Stopped:
		return 2
	case flow.Parked:
		return 3
	}
	return -1
}

func bucketOf(took time.Duration) int {
	n := uint64(max(took, 0)) >> (tookShift - 2)
	if n < 4 {
		return 0
	}
	power := bits.Len64(n) - 3 // of n in [4, 8) it is 0
	return min(4*power+int(n>>power)-4, tookBuckets-1)
}

// middle is a duration within a bucket, in seconds.
func middle(bucket int) float32 {
	low := math.Ldexp(1+float64(bucket%4)/4, bucket/4+tookShift)
	return float32(low * 1.1 / float64(time.Second))
}

// run ends a point every page.PointEvery, until ctx ends.
func (s *rates) run(ctx context.Context) {
	for backoff.Sleep(ctx, page.PointEvery) == nil {
		for i := range s.routes {
			s.routes[i].end()
		}
	}
}

// end ends the present point.
func (s *routeRates) end() {
	p := page.Point{Done: s.results[0].Swap(0), Skipped: s.results[1].Swap(0), Failed: s.results[2].Swap(0), Parked: s.results[3].Swap(0)}
	var took [tookBuckets]uint32
	all := uint32(0)
	for i := range took {
		took[i] = s.took[i].Swap(0)
		all += took[i]
	}
	if all > 0 {
		p.P50, p.P99 = quantile(took[:], all/2), quantile(took[:], all-all/100-1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hour[s.ended%page.PointCount] = p
	s.ended++
}

// quantile is the duration of the call with so many faster ones.
func quantile(took []uint32, faster uint32) float32 {
	for i, n := range took {
		if faster < n {
			return middle(i)
		}
		faster -= n
	}
	return 0
}

// of returns the points of a route, the oldest first.
func (s *rates) of(route int) []page.Point {
	r := &s.routes[route]
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(r.ended, page.PointCount)
	points := make([]page.Point, n)
	for i := range points {
		points[i] = r.hour[(r.ended-n+i)%page.PointCount]
	}
	return points
}
