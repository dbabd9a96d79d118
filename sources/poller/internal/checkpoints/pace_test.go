package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/state"
)

// fleetStore counts the positions that it is given, and notes the longest time between
// two that it stores of one shard.
type fleetStore struct {
	fails   func(shard string) bool // nil: none
	writes  int
	stored  map[string]time.Time
	longest time.Duration
}

func (s *fleetStore) Checkpoint(_ context.Context, cs []state.Checkpoint) []error {
	errs := make([]error, len(cs))
	for i, c := range cs {
		id := c.Lease.ShardID
		if s.writes++; s.fails != nil && s.fails(id) {
			errs[i] = errors.New("it fails")
			continue
		}
		if last, ok := s.stored[id]; ok {
			s.longest = max(s.longest, time.Since(last))
		}
		s.stored[id] = time.Now()
	}
	return errs
}

// moving returns a Checkpointer with n shards whose positions move all the time.
func moving(n int) (*Checkpointer, *fleetStore, []*Holding) {
	store := &fleetStore{stored: make(map[string]time.Time)}
	c := New(Config{Store: store, Every: time.Second, PerSecond: 20, Done: func(int, time.Duration, error) {}})
	var records atomic.Int64
	var all []*Holding
	for i := range n {
		h := &Holding{Lease: state.Lease{ShardID: fmt.Sprint(i)}, Observe: func() {}, Lost: func() {},
			Position: func() state.Position { return state.Position{Sequence: strconv.FormatInt(records.Add(1), 10)} }}
		c.Hold(h)
		all = append(all, h)
	}
	return c, store, all
}

// A shard's first position is stored at once: its claim had a progress. Then each of many
// shards has its turn, and readiness waits for it. Few are stored in each second.
func TestPace(t *testing.T) {
	for _, tt := range []struct {
		shards, perSecond int
		every             time.Duration
	}{{1000, 20, 50 * time.Second}, {10, 10, time.Second}} {
		t.Run(fmt.Sprint(tt.shards), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, store, _ := moving(tt.shards)
				round := func() {
					time.Sleep(time.Second)
					c.Round(t.Context())
				}
				if round(); store.writes != tt.shards {
					t.Errorf("%d first positions are stored, want %d", store.writes, tt.shards)
				}
				for second := range 60 {
					before := store.writes
					round()
					if n := store.writes - before; n != tt.perSecond {
						t.Fatalf("second %d: %d writes, want %d", second, n, tt.perSecond)
					}
					if late, _ := c.Unproven(0); len(late) > 0 {
						t.Fatalf("second %d: %d shards are unproven", second, len(late))
					}
				}
				if len(store.stored) != tt.shards || store.longest != tt.every {
					t.Errorf("%d of %d shards are stored, each at least every %v; want every %v", len(store.stored), tt.shards, store.longest, tt.every)
				}
				store.fails = func(id string) bool { return id == "3" }
				for range int(tt.every/time.Second)*2 + 2 {
					round()
				}
				if late, _ := c.Unproven(time.Second); len(late) != 1 || late[0] != "3" {
					t.Errorf("%v are unproven, want the one that fails", late)
				}
			})
		})
	}
}

// Positions that always fail do not take the turns of others.
func TestFailuresTakeNoTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, store, _ := moving(100)
		store.fails = func(id string) bool { return len(id) == 2 && id < "60" } // 50 of them
		for range 20 {
			time.Sleep(time.Second)
			c.Round(t.Context())
		}
		if len(store.stored) != 50 || store.longest != 5*time.Second {
			t.Errorf("%d shards are stored, each at least every %v", len(store.stored), store.longest)
		}
	})
}

// Flush waits for no turn, and gives others no more turns.
func TestFlushIsNotPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, store, all := moving(150)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		var running sync.WaitGroup
		running.Go(func() { c.Run(ctx, ctx) })
		began, ends := time.Now(), all[:50]
		for _, h := range ends {
			time.Sleep(33 * time.Millisecond)
			c.mu.Lock()
			h.Position = func() state.Position { return state.Position{Sequence: "1000000000", Finished: true} }
			c.mu.Unlock()
			flushed := time.Now()
			err := c.Flush(ctx, h)
			c.Drop(h)
			if err != nil || time.Since(flushed) > 0 || !h.Stored.Finished {
				t.Fatalf("shard %s: after %v %+v is stored: %v", h.Lease.ShardID, time.Since(flushed), h.Stored, err)
			}
		}
		stop()
		running.Wait()
		if most := len(all) + len(ends) + int(20*(time.Since(began)+time.Second).Seconds()); store.writes > most {
			t.Errorf("%d writes, want at most %d", store.writes, most)
		}
	})
}
