package statetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/state"
)

// many is more than one request to some services may hold.
const many = 150

func manyIDs(prefix string) (all []string) {
	for i := range many {
		all = append(all, fmt.Sprintf("shardId-%s-%03d", prefix, i))
	}
	return all
}

// testHundreds stores and lists more than fits into a page or a transaction of
// some databases.
func testHundreds(t *testing.T, s state.Store) {
	closed, open := manyIDs("closed"), manyIDs("open")
	succeeds(t, "Finish of many", s.Finish(t.Context(), streamA, closed...))
	cs := make([]state.Checkpoint, len(open))
	var wg sync.WaitGroup
	for i, id := range open {
		wg.Go(func() {
			sh, err := s.Claim(t.Context(), streamA, id, "", "me")
			if err != nil {
				t.Errorf("Claim: %v", err)
			}
			cs[i] = at(state.Lease{Stream: streamA, ShardID: id, Owner: "me", Epoch: sh.Epoch}, number(1000+i))
			if i%50 == 49 {
				cs[i].Lease.Epoch++
			}
		})
	}
	wg.Wait()
	errs := s.Checkpoint(t.Context(), cs)
	if len(errs) != len(cs) {
		t.Fatalf("Checkpoint of %d: %d errors", len(cs), len(errs))
	}
	shards, err := s.Shards(t.Context(), streamA)
	if err != nil || len(shards) != 2*many {
		t.Fatalf("%d shards are stored, want %d: %v", len(shards), 2*many, err)
	}
	stored := make(map[string]state.Position)
	for _, sh := range shards {
		stored[sh.ID] = sh.Position
	}
	for i, id := range open {
		lost := i%50 == 49
		want := state.Position{Sequence: number(1000 + i)}
		if lost {
			want = state.Position{}
		}
		if errors.Is(errs[i], state.ErrLeaseLost) != lost || (errs[i] == nil) == lost || stored[id] != want {
			t.Errorf("checkpoint %d: %v, and %v is stored; want %v", i, errs[i], stored[id], want)
		}
	}
	for _, id := range closed {
		if stored[id] != (state.Position{Finished: true}) {
			t.Errorf("%s is at %v, want it finished", id, stored[id])
		}
	}
}
