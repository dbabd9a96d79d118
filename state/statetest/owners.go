package statetest

import (
	"errors"
	"testing"
	"time"

	"github.com/sluicehq/sluice/state"
)

// Owners tests how long an owner lives. s is empty. timeout is how long an owner
// lives after a heartbeat; a store may need to watch a silent owner for as long
// again, by claims that it refuses. pass lets time go by without a heartbeat. It takes no time in a bubble of
// testing/synctest, where pass is time.Sleep.
func Owners(t *testing.T, s state.Store, timeout time.Duration, pass func(time.Duration)) {
	t.Helper()
	almost := timeout - timeout/10
	heartbeat := func(owner string) {
		t.Helper()
		succeeds(t, "Heartbeat", s.Heartbeat(t.Context(), owner))
	}
	isHeld := func(when, id string) {
		t.Helper()
		_, err := s.Claim(t.Context(), streamA, id, "", "she")
		fails(t, when+": Claim", err, state.ErrHeld)
	}
	// silent calls done until it succeeds, for twice the timeout and more.
	silent := func(what string, done func() bool) {
		t.Helper()
		for range 25 {
			if pass(timeout / 10); done() {
				return
			}
		}
		t.Fatalf("2.5 times the timeout after the last heartbeat: %s", what)
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
	claim(t, s, streamA, shard3, "", "me")
	pass(almost)
	isHeld("after the claim of another shard", shard1)

	ended, l4 := claim(t, s, streamA, shard4, "", "me")
	checkpoint(t, s, end(l4, ""))
	forget(t, s, streamA, shard4)
	ended.Position.Finished = true
	expect(t, s, streamA, ended)
	silent("the finished shard of a silent owner is not forgotten", func() bool {
		forget(t, s, streamA, shard4)
		shards, err := s.Shards(t.Context(), streamA)
		if err != nil || len(shards) < 3 {
			t.Fatalf("stored: %+v, %v; want the 3 that are not finished", shards, err)
		}
		return len(shards) == 3
	})
	// No one has claimed it: the lease is still valid, and the owner may return.
	checkpoint(t, s, at(lease, number(1)))
	heartbeat("me")
	isHeld("of an owner that was silent and lives again", shard1)

	var yours state.Shard
	silent("its shard is held", func() bool {
		var err error
		if yours, err = s.Claim(t.Context(), streamA, shard1, "", "you"); err != nil && !errors.Is(err, state.ErrHeld) {
			t.Fatalf("Claim: %v", err)
		}
		return err == nil
	})
	taken := state.Lease{Stream: streamA, ShardID: shard1, Owner: "you", Epoch: yours.Epoch}
	if yours.Epoch <= mine.Epoch || yours.Position.Sequence != number(1) {
		t.Fatalf("a silent owner's shard: %+v, before: %+v", yours, mine)
	}
	// Who lost one shard in its silence has lost them all.
	fails(t, "heartbeat of an owner whose shard was claimed in its silence", s.Heartbeat(t.Context(), "me"), state.ErrFenced)
	_, err := s.Claim(t.Context(), streamA, shard2, "", "me")
	fails(t, "its claim of a shard that it had", err, state.ErrFenced)
	checkpointErr(t, s, at(lease, number(2)), state.ErrLeaseLost)
	fails(t, "Release of what was lost", s.Release(t.Context(), lease), state.ErrLeaseLost)
	checkpoint(t, s, at(taken, number(2)))
	claim(t, s, streamA, shard2, "", "you")
	isHeld("after a claim", shard1)
	succeeds(t, "Release", s.Release(t.Context(), taken))
	claim(t, s, streamA, shard1, "", "he") // at once
}
