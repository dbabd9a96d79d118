package dynamostate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/state"
)

// A shard's row says since when its owner has it, and when its position changed last.
func TestTimesOfAShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := over(new(memory))
		claim := func(owner string) state.Lease {
			t.Helper()
			sh, err := s.Claim(t.Context(), stream, testShard, "", owner)
			if err != nil {
				t.Fatal(err)
			}
			return state.Lease{Stream: stream, ShardID: sh.ID, Owner: owner, Epoch: sh.Epoch}
		}
		checkpoint := func(l state.Lease, sequence string) {
			t.Helper()
			for _, err := range s.Checkpoint(t.Context(), []state.Checkpoint{{Lease: l, Position: state.Position{Sequence: sequence}}}) {
				t.Fatal(err)
			}
		}
		begun := time.Now().Unix()
		want := func(when string, claimed, moved int64) {
			t.Helper()
			_, v, err := fetch[storedShard](t.Context(), s.rows, shardKey(stream, testShard))
			if moved > 0 {
				moved += begun
			}
			if err != nil || v.Claimed != begun+claimed || v.Moved != moved {
				t.Errorf("%s: claimed after %d s, moved at %d, %v; want after %d s, at %d", when, v.Claimed-begun, v.Moved, err, claimed, moved)
			}
		}
		claim("a")
		want("claimed", 0, 0)
		time.Sleep(time.Second)
		l := claim("a")
		want("claimed again by its owner", 0, 0)
		time.Sleep(time.Second)
		checkpoint(l, "7")
		want("moved", 0, 2)
		time.Sleep(time.Second)
		checkpoint(l, "7")
		want("not moved", 0, 2)
		if err := s.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		want("released", 0, 2)
		time.Sleep(time.Second)
		claim("b")
		want("claimed by another", 4, 2)
	})
}
