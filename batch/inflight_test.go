package batch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/batch"
)

// With fewer commits at a time, commits are larger: a batch that waits for a slot still
// takes items. After the limit rises, all slots are used again.
func TestSetInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sizes []int
		running, most := 0, 0
		b := batch.New(func(_ context.Context, items []int) []error {
			mu.Lock()
			running++
			most = max(most, running)
			sizes = append(sizes, len(items))
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			return nil
		}, nil, batch.Options{MaxItems: 100, InFlight: 4, Linger: time.Millisecond})
		var all sync.WaitGroup
		round := func(limit, calls int) string {
			b.SetInFlight(limit)
			mu.Lock()
			sizes, most = nil, 0
			mu.Unlock()
			for i := range calls {
				all.Go(func() {
					if err := b.Do(t.Context(), i); err != nil {
						t.Error(err)
					}
				})
				time.Sleep(10 * time.Millisecond)
			}
			all.Wait()
			return fmt.Sprint(most, sizes)
		}
		for _, tt := range []struct {
			limit int
			want  string
		}{
			{99, "4 [1 1 1 1 4]"}, // never more than Options.InFlight
			{1, "1 [1 7]"},
			{-1, "1 [1 7]"}, // nor less than one
			{2, "2 [1 1 6]"},
		} {
			if got := round(tt.limit, 8); got != tt.want {
				t.Errorf("limit %d: %s, want %s", tt.limit, got, tt.want)
			}
		}
		// A waiting batch is sent as soon as a slot is free.
		b.SetInFlight(1)
		all.Go(func() { _ = b.Do(t.Context(), 1) })
		time.Sleep(10 * time.Millisecond)
		all.Go(func() { _ = b.Do(t.Context(), 2) })
		time.Sleep(10 * time.Millisecond)
		start := time.Now()
		b.SetInFlight(2)
		all.Wait()
		if took := time.Since(start); took > 1010*time.Millisecond {
			t.Errorf("the second one took %v", took)
		}
	})
}
