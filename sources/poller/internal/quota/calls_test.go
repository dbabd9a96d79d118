package quota

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// callers is shards that call as fast as they may.
type callers struct {
	c  *calls
	mu sync.Mutex
	at []time.Time
}

// run has n shards wait for their turn, then for pause, again and again; it
// returns how often each has called in d.
func (cs *callers) run(t *testing.T, n int, backlog bool, pause, d time.Duration) func() []int {
	counts := make([]int, n)
	ctx, cancel := context.WithTimeout(t.Context(), d)
	var shards sync.WaitGroup
	for i := range n {
		shards.Go(func() {
			tn := newTurn()
			for cs.c.wait(ctx, tn, backlog) == nil {
				counts[i]++
				cs.mu.Lock()
				cs.at = append(cs.at, time.Now())
				cs.mu.Unlock()
				select {
				case <-time.After(pause):
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return func() []int {
		shards.Wait()
		cancel()
		return counts
	}
}

// most returns the largest number of calls within a second.
func (cs *callers) most() (most int) {
	slices.SortFunc(cs.at, time.Time.Compare)
	first := 0
	for i, at := range cs.at {
		for at.Sub(cs.at[first]) >= time.Second {
			first++
		}
		most = max(most, i+1-first)
	}
	return most
}

// The calls of a table stay within its budget, and are shared evenly.
func TestCallsOfATable(t *testing.T) {
	for _, c := range []struct{ rate, shards int }{{1000, 300}, {1000, 1500}, {10, 3}, {1, 2}, {7, 1}} {
		synctest.Test(t, func(t *testing.T) {
			cs := callers{c: newCalls(c.rate)}
			counts := cs.run(t, c.shards, true, 0, 30*time.Second)()
			if most, limit := cs.most(), c.rate+1+c.rate/50; most > limit {
				t.Errorf("%+v: %d calls within a second, want %d at most", c, most, limit)
			}
			total := 0
			for _, n := range counts {
				total += n
			}
			if total < 30*c.rate {
				t.Errorf("%+v: %d calls in 30 s", c, total)
			}
			if lo, hi := slices.Min(counts), slices.Max(counts); hi > lo+2+c.rate/50 { // one may be alone at first
				t.Errorf("%+v: a shard made %d calls, another %d", c, lo, hi)
			}
		})
	}
}

// A shard with a backlog takes what the others leave, and is not starved by
// them.
func TestBacklogYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := callers{c: newCalls(100)}
		catchingUp := cs.run(t, 10, true, 0, 20*time.Second)
		time.Sleep(100 * time.Millisecond)
		busy := cs.run(t, 10, false, 200*time.Millisecond, 19*time.Second)
		for i, n := range busy() {
			if n < 90 {
				t.Errorf("busy shard %d: %d calls in 19 s, want 5 a second", i, n)
			}
		}
		for i, n := range catchingUp() {
			if n < 90 {
				t.Errorf("shard %d with a backlog: %d calls in 20 s, want half of 200", i, n)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		cs := callers{c: newCalls(100)}
		catchingUp := cs.run(t, 10, true, 0, 20*time.Second)
		busy := cs.run(t, 200, false, 200*time.Millisecond, 20*time.Second)
		for i, n := range append(catchingUp(), busy()...) {
			if n < 8 || n > 11 {
				t.Errorf("shard %d: %d calls in 20 s of a budget for 10", i, n)
			}
		}
	})
}

func TestCallsEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls(1)
		if err := c.wait(t.Context(), newTurn(), false); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		for range 3 {
			if err := c.wait(ctx, newTurn(), true); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("wait: %v", err)
			}
		}
		start := time.Now()
		if err := c.wait(t.Context(), newTurn(), true); err != nil || time.Since(start) > 701*time.Millisecond {
			t.Errorf("wait: %v after %v: those that gave up took their turn", err, time.Since(start))
		}
	})
}

// A call that nobody waits for counts as one; it goes before nobody.
func TestCallsTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls(100) // one every 10 ms, and one early
		for i, ok := range []bool{true, true, false} {
			if c.try() != ok {
				t.Errorf("call %d at once: %v, want %v", i+1, !ok, ok)
			}
		}
		time.Sleep(10 * time.Millisecond)
		for i, ok := range []bool{true, false} {
			if c.try() != ok {
				t.Errorf("call %d 10 ms later: %v, want %v", i+1, !ok, ok)
			}
		}
		time.Sleep(time.Second)
		c.queues[1].PushBack(newTurn())
		if c.try() {
			t.Error("it went before a table that waits")
		}
	})
}
