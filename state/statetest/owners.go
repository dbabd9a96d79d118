package statetest

import (
	"errors"
	"testing"
	"time"

	"github.com/sluicehq/sluice/state"
)

// Owners tests how long an owner lives. s is empty. timeout is how long an owner
// lives after a heartbeat; pass lets that much time go by without one. It takes no
// time in a bubble of testing/synctest, where pass is time.Sleep.
func Owners(t *testing.T, s state.Store, timeout time.Duration, pass func(time.Duration)) {
	t.Helper()
	almost := timeout - timeout/10
	heartbeat := func(owner string) {
		t.Helper()
		succeeds(t, "Heartbeat", s.Heartbeat(t.Context(), owner))
	}
	isHeld := func(when, id string) {
		t.Helper()
		if sh, err := s.Claim(t.Context(), streamA, id, "", "you"); !errors.Is(err, state.ErrHeld) {
			t.Fatalf("%s: Claim = %+v, %v; want ErrHeld", when, sh, err)
		}
	}
	heartbeat("nobody") // owns nothing
	mine, lease := claim(t, s, streamA, shard1, "", "me")
	claim(t, s, streamA, shard2, "", "me")
	for range 3 {
		pass(almost)
		isHeld("after almost the timeout", shard1)
		isHeld("after almost the timeout", shard2)
		heartbeat("me")
		heartbeat("you")
	}
	expect(t, s, streamA, mine)
	pass(almost)
	_, l3 := claim(t, s, streamA, shard3, "", "me")
	pass(almost)
	isHeld("after the claim of another shard", shard1)

	ended, l4 := claim(t, s, streamA, shard4, "", "me")
	checkpoint(t, s, end(l4, ""))
	forget(t, s, streamA, shard4)
	ended.Position.Finished = true
	expect(t, s, streamA, ended)
	pass(timeout + timeout/10)
	forget(t, s, streamA, shard4) // a silent owner has it
	if shards, err := s.Shards(t.Context(), streamA); err != nil || len(shards) != 3 {
		t.Fatalf("stored: %+v, %v; want the 3 that are not finished", shards, err)
	}
	// No one has claimed it: the lease is still valid.
	checkpoint(t, s, at(lease, number(1)))
	yours, taken := claim(t, s, streamA, shard1, "", "you")
	if yours.Epoch <= mine.Epoch || yours.Position.Sequence != number(1) {
		t.Fatalf("a silent owner's shard: %+v, before: %+v", yours, mine)
	}
	heartbeat("me") // does not restore a lost lease
	checkpointErr(t, s, at(lease, number(2)), state.ErrLeaseLost)
	if err := s.Release(t.Context(), lease); !errors.Is(err, state.ErrLeaseLost) {
		t.Fatalf("Release of what was lost: %v, want ErrLeaseLost", err)
	}
	checkpoint(t, s, at(taken, number(2)))
	isHeld("of an owner that was silent and lives again", shard2)
	succeeds(t, "Release", s.Release(t.Context(), l3))
	claim(t, s, streamA, shard3, "", "you") // at once
}
