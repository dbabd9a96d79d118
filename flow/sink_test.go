package flow

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
)

// requests counts commits that take 10 ms each.
type requests struct {
	mu    sync.Mutex
	sizes []int
}

func (r *requests) commit(ctx context.Context, items []int) []error {
	time.Sleep(10 * time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sizes = append(r.sizes, len(items))
	return nil
}

// Batches here linger for ever: only the flow's scope tells them to go.
func TestGroupCommit(t *testing.T) {
	for name, c := range map[string]struct {
		records, perItem, max int
		o                     Options
		requests              int
		took                  time.Duration
	}{
		"a lone record waits for nothing":      {1, 1, 10, Options{}, 1, 10 * time.Millisecond},
		"100 records make full requests":       {100, 1, 10, Options{}, 10, 10 * time.Millisecond},
		"the last one is not full":             {95, 1, 10, Options{}, 10, 10 * time.Millisecond},
		"waiting handlers give back slots":     {100, 1, 10, Options{Concurrency: 1}, 10, 10 * time.Millisecond},
		"the window bounds those that wait":    {100, 1, 100, Options{Window: 20}, 5, 50 * time.Millisecond},
		"records of an item go one by one":     {10, 10, 10, Options{}, 10, 100 * time.Millisecond},
		"a shard in order goes one by one too": {10, 1, 10, Options{Order: ByShard}, 10, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r requests
				sink := batch.New(r.commit, nil, batch.Options{MaxItems: c.max, InFlight: 16, Linger: -1})
				c.o.Logger = quiet
				start := time.Now()
				f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error { return sink.Do(ctx, 1) }), c.o)
				var rs []sluice.Record
				for i := range c.records {
					rs = append(rs, rec(fmt.Sprint(i/c.perItem), i+1))
				}
				mustSubmit(t, f, rs...)
				mustClose(t, f, uint64(c.records))
				if took := time.Since(start); len(r.sizes) != c.requests || took != c.took {
					t.Errorf("%d requests %v in %v, want %d in %v", len(r.sizes), r.sizes, took, c.requests, c.took)
				}
			})
		})
	}
}

// A record in backoff, one at a gate and a blocked Submit join nothing: nobody
// waits for them. A handler that runs may.
func TestScopeCountsWhoRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r requests
		sink := batch.New(r.commit, nil, batch.Options{MaxItems: 10, Linger: -1})
		fails := true
		m := routes(func(ctx context.Context, r *sluice.Record) error {
			if keyOf(r) == "sleeps" {
				time.Sleep(time.Hour)
			}
			return sink.Do(ctx, 1)
		}, func(ctx context.Context, r *sluice.Record) error {
			if keyOf(r) == "fails" && fails {
				fails = false
				return sluice.RetryAfter(time.Hour, errDown)
			}
			return nil
		})
		m.routes[1].Rate = 1.0 / 3600
		m.pick = func(r *sluice.Record) ([]int, error) {
			if keyOf(r)[0] == 's' {
				return []int{0}, nil
			}
			return []int{1}, nil
		}
		f := Open(t.Context(), m, Options{Logger: quiet, Window: 4})
		mustSubmit(t, f, rec("fails", 1))
		synctest.Wait()
		go mustSubmit(t, f, rec("waits", 2), rec("sink", 3), rec("sleeps", 4), rec("blocked", 5))
		time.Sleep(time.Hour - time.Millisecond)
		r.want(t)
		time.Sleep(time.Minute)
		r.want(t, 2)
		mustClose(t, f, 5)

		f = Open(t.Context(), m, Options{Logger: quiet, Window: 2})
		mustSubmit(t, f, rec("waits", 1))
		synctest.Wait()
		go mustSubmit(t, f, rec("sink", 2), rec("blocked", 3))
		time.Sleep(time.Minute)
		r.want(t, 2, 1)
		mustClose(t, f, 3)
	})
}

func (r *requests) want(t *testing.T, sizes ...int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.sizes, sizes) {
		t.Errorf("requests %v, want %v", r.sizes, sizes)
	}
}
