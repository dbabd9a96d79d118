package statetest

import (
	"testing"

	"github.com/sluicehq/sluice/state"
)

// testRestart ends the process between two steps, without releasing.
func testRestart(t *testing.T, open func() state.Store) {
	s := open()
	starts(t, s, streamA, latest(), latest())
	succeeds(t, "Finish", s.Finish(t.Context(), streamA, shard1))
	before, l := claim(t, s, streamA, shard2, shard1, "me")
	closeStore(t, s)

	s = open()
	starts(t, s, streamA, state.Start{}, latest())
	if got, err := s.Streams(t.Context(), streamA.Application); err != nil || len(got) != 1 || got[0] != streamA {
		t.Fatalf("Streams after a restart = %v, %v; want %v", got, err, streamA)
	}
	expect(t, s, streamA, state.Shard{ID: shard1, Position: state.Position{Finished: true}})
	expect(t, s, streamA, before)
	// The lease is valid until the next claim.
	checkpoint(t, s, at(l, number(5)))
	before.Position.Sequence = number(5)
	closeStore(t, s)

	s = open()
	expect(t, s, streamA, before)
	taken, l2 := claim(t, s, streamA, shard2, "", "you")
	if taken.Epoch <= before.Epoch || taken.Position != before.Position {
		t.Fatalf("taken over: %+v, before: %+v", taken, before)
	}
	checkpointErr(t, s, at(l, number(6)), state.ErrLeaseLost)
	checkpoint(t, s, end(l2, number(7)))
	succeeds(t, "Release", s.Release(t.Context(), l2))
	forget(t, s, streamA, shard1)
	_, l3 := claim(t, s, streamA, shard3, "", "you") // never released
	checkpoint(t, s, end(l3, number(7)))
	letters, ok := s.(state.Letters)
	if ok {
		put(t, letters, "app", "1", "letter")
		put(t, letters, "app", "2", "deleted")
		succeeds(t, "DeleteLetter", letters.DeleteLetter(t.Context(), "app", "2"))
	}
	kept, hasValues := s.(state.Values)
	if hasValues {
		putValue(t, kept, "app", "1", "value")
		putValue(t, kept, "app", "2", "deleted")
		succeeds(t, "DeleteValue", kept.DeleteValue(t.Context(), "app", "2"))
	}
	closeStore(t, s)

	s = open()
	last := state.Shard{ID: shard2, Parent: shard1, Epoch: taken.Epoch, Position: state.Position{Sequence: number(7), Finished: true}}
	stored(t, s, streamA, last, state.Shard{ID: shard3, Owner: "you", Epoch: l3.Epoch, Position: last.Position})
	forget(t, s, streamA, shard3) // whose owner ended with its process
	closeStore(t, s)

	s = open()
	defer closeStore(t, s)
	stored(t, s, streamA, last)
	if ok {
		data, found, err := s.(state.Letters).GetLetter(t.Context(), "app", "1")
		if string(data) != "letter" || !found || err != nil {
			t.Fatalf("GetLetter after a restart = %q, %v, %v", data, found, err)
		}
		if got := ids(t, s.(state.Letters), "app", "", 10); len(got) != 1 {
			t.Fatalf("letters after a restart: %v, want 1, as 2 was deleted", got)
		}
	}
	if hasValues {
		if got := values(t, s.(state.Values), "app", ""); len(got) != 1 || got[0] != "1=value" {
			t.Fatalf("values after a restart: %q, want the one that was not deleted", got)
		}
	}
}
