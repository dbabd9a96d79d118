package statetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/state"
)

const rounds = 10

// testCheckpointRace stores positions of one lease concurrently: the greatest is
// stored in the end.
func testCheckpointRace(t *testing.T, s state.Store) {
	const writers = 8
	_, l := claim(t, s, streamA, shard1, "", "me")
	for round := range rounds {
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				errs := s.Checkpoint(t.Context(), []state.Checkpoint{at(l, number(round*writers+w+1))})
				if errs != nil && !errors.Is(errs[0], state.ErrRegress) {
					t.Errorf("Checkpoint: %v", errs)
				}
			})
		}
		wg.Wait()
		if got, want := shard(t, s, streamA, shard1).Position.Sequence, number((round+1)*writers); got != want {
			t.Fatalf("round %d: after checkpoints of up to %s at the same time %s is stored", round, want, got)
		}
	}
}

// testClaimCheckpointRace claims a shard while its owner stores positions. A
// position is stored before the claim, which then returns it, or not at all.
func testClaimCheckpointRace(t *testing.T, s state.Store) {
	_, l := claim(t, s, streamA, shard1, "", "me")
	n := 0
	for round := range rounds {
		begun := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 100 {
				errs := s.Checkpoint(t.Context(), []state.Checkpoint{at(l, number(n+i+1))})
				if i == 0 {
					close(begun)
				}
				if errs != nil {
					if !errors.Is(errs[0], state.ErrLeaseLost) {
						t.Errorf("Checkpoint: %v", errs)
					}
					return
				}
			}
		})
		<-begun
		sh, next := claim(t, s, streamA, shard1, "", "me")
		wg.Wait()
		if got := shard(t, s, streamA, shard1); got != sh {
			t.Fatalf("round %d: the claim returned %+v, and then %+v is stored", round, sh, got)
		}
		l, n = next, n+100
	}
}

func testConcurrent(t *testing.T, s state.Store) {
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			id := fmt.Sprintf("shardId-0000000000000000000%d-0000000%d", w, w)
			owner := fmt.Sprint("owner ", w)
			for round := range 5 {
				sh, err := s.Claim(t.Context(), streamA, id, "", owner)
				if err != nil {
					t.Errorf("Claim: %v", err)
					return
				}
				l := state.Lease{Stream: streamA, ShardID: id, Owner: owner, Epoch: sh.Epoch}
				for i := range 3 {
					if errs := s.Checkpoint(t.Context(), []state.Checkpoint{at(l, number(round*3+i+1))}); errs != nil {
						t.Errorf("Checkpoint: %v", errs)
					}
				}
				if _, err := s.Shards(t.Context(), streamA); err != nil {
					t.Errorf("Shards: %v", err)
				}
				if err := s.Heartbeat(t.Context(), owner); err != nil {
					t.Errorf("Heartbeat: %v", err)
				}
				if err := s.Release(t.Context(), l); err != nil {
					t.Errorf("Release: %v", err)
				}
			}
		})
	}
	wg.Wait()
	shards, err := s.Shards(t.Context(), streamA)
	if err != nil || len(shards) != 8 {
		t.Fatalf("%d shards, %v; want 8", len(shards), err)
	}
	for _, sh := range shards {
		if sh.Position.Sequence != number(15) || sh.Epoch != 5 || sh.Owner != "" {
			t.Errorf("%+v, want sequence 15, epoch 5 and no owner", sh)
		}
	}
}
