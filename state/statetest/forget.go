package statetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/state"
)

const shard4 = "shardId-00000001414576573624-00000004"

func forget(t *testing.T, s state.Store, st state.Stream, ids ...string) {
	t.Helper()
	succeeds(t, "Forget", s.Forget(t.Context(), st, ids...))
}

// finished stores a shard that was read to its end and released.
func finished(t *testing.T, s state.Store, st state.Stream, id, parent string) state.Shard {
	t.Helper()
	_, l := claim(t, s, st, id, parent, "me")
	checkpoint(t, s, end(l, number(9)))
	succeeds(t, "Release", s.Release(t.Context(), l))
	return shard(t, s, st, id)
}

func stored(t *testing.T, s state.Store, st state.Stream, want ...state.Shard) {
	t.Helper()
	got, err := s.Shards(t.Context(), st)
	slices.SortFunc(got, func(a, b state.Shard) int { return strings.Compare(a.ID, b.ID) })
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("stored: %+v, %v\nwant:   %+v", got, err, want)
	}
}

func testForget(t *testing.T, s state.Store) {
	starts(t, s, streamA, latest(), latest())
	forget(t, s, streamA, shard1) // not stored
	stored(t, s, streamA)

	finished(t, s, streamA, shard1, "")
	kept := finished(t, s, streamA, shard2, shard1) // not named
	_, l3 := claim(t, s, streamA, shard3, shard2, "me")
	checkpoint(t, s, end(l3, number(9)))
	held := shard(t, s, streamA, shard3) // finished, with a living owner
	_, l4 := claim(t, s, streamA, shard4, shard3, "me")
	checkpoint(t, s, at(l4, number(9)))
	succeeds(t, "Release", s.Release(t.Context(), l4))
	unfinished := shard(t, s, streamA, shard4)
	succeeds(t, "Finish", s.Finish(t.Context(), streamA, "shardId-unread"))

	for range 2 {
		forget(t, s, streamA, shard1, shard3, shard4, "shardId-unread", "shardId-unknown")
		stored(t, s, streamA, kept, held, unfinished)
		forget(t, s, streamA)
	}
	checkpoint(t, s, end(l3, number(10))) // its lease is still valid
	succeeds(t, "Release of a shard that was not forgotten", s.Release(t.Context(), l3))
	forget(t, s, streamA, shard2, shard3)
	stored(t, s, streamA, unfinished)
	starts(t, s, streamA, state.Start{}, latest())
}

func testForgetApart(t *testing.T, s state.Store) {
	recreated, other := streamA, streamA
	recreated.ARN += "1"
	other.Application = "other"
	finished(t, s, streamA, shard1, "")
	one, two := finished(t, s, recreated, shard1, ""), finished(t, s, other, shard1, "")
	forget(t, s, streamA, shard1)
	stored(t, s, streamA)
	stored(t, s, recreated, one)
	stored(t, s, other, two)
}

// A deleted shard is like one never stored, but its parent's epoch counts, and its
// child keeps its own.
func testForgotten(t *testing.T, s state.Store) {
	for range 4 {
		claim(t, s, streamA, shard1, "", "me")
	}
	parent := shard(t, s, streamA, shard1)
	finished(t, s, streamA, shard2, shard1)
	child, l := claim(t, s, streamA, shard3, shard2, "me")
	forget(t, s, streamA, shard2)

	expect(t, s, streamA, child)
	checkpoint(t, s, at(l, number(11)))
	after, _ := claim(t, s, streamA, shard3, "", "me")
	if after.Epoch <= child.Epoch || after.Parent != shard2 || after.Position.Sequence != number(11) {
		t.Fatalf("child of a forgotten shard: %+v, before: %+v", after, child)
	}
	again, l := claim(t, s, streamA, shard2, shard1, "you")
	if want := (state.Shard{ID: shard2, Parent: shard1, Owner: "you", Epoch: again.Epoch}); again != want || again.Epoch <= parent.Epoch {
		t.Fatalf("a forgotten shard was claimed: %+v, want %+v with an epoch above its parent's %d", again, want, parent.Epoch)
	}
	checkpoint(t, s, at(l, number(1)))
}
