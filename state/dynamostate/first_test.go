package dynamostate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

// Only the claim of a shard that nobody had is the first, also if its parent was read.
func TestFirstClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		a, b := over(table), over(table)
		claim := func(s *Store, id, parent, owner string, first bool) state.Lease {
			t.Helper()
			sh, err := s.Claim(t.Context(), stream, id, parent, owner)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.FirstClaim(stream, id); got != first {
				t.Errorf("%s by %s: first %v, want %v", id, owner, got, first)
			}
			return state.Lease{Stream: stream, ShardID: id, Owner: owner, Epoch: sh.Epoch}
		}
		if a.FirstClaim(stream, "parent") {
			t.Error("a shard that is not claimed")
		}
		l := claim(a, "parent", "", "a", true)
		claim(a, "child", "parent", "a", true)
		if err := a.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if a.FirstClaim(stream, "parent") {
			t.Error("a shard that was released")
		}
		claim(b, "parent", "", "b", false)
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookNext) // until b looks at a again
		claim(b, "child", "parent", "b", false)
		table.Fault = func(call string, k rows.Key) mishap {
			if call == "Write" && k.Sort == "lost" {
				return mishap{Err: errLost, Made: true}
			}
			return mishap{}
		}
		if _, err := b.Claim(t.Context(), stream, "lost", "", "b"); err == nil {
			t.Fatal("no error of a lost response")
		}
		table.Fault = nil
		claim(b, "lost", "", "b", false) // it may have been claimed between
	})
}
