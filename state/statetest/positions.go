package statetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

func testStart(t *testing.T, s state.Store) {
	noStart(t, s, streamA)
	for _, given := range []state.Start{latest(), {}, horizon} {
		starts(t, s, streamA, given, latest())
	}
}

func testStartRefused(t *testing.T, s state.Store) {
	for _, want := range []state.Start{{Position: "EARLIEST"}, {Position: "LATEST"}, {At: latest().At}} {
		if got, err := s.Start(t.Context(), streamA, want); err == nil {
			t.Errorf("Start(%v) = %v, want an error", want, got)
		}
	}
	noStart(t, s, streamA)
}

func testStartRace(t *testing.T, s state.Store) {
	var wg sync.WaitGroup
	got := make([]state.Start, 8)
	for i := range got {
		wg.Go(func() {
			want := latest()
			want.At = want.At.AddDate(0, 0, i)
			var err error
			if got[i], err = s.Start(t.Context(), streamA, want); err != nil {
				t.Errorf("Start: %v", err)
			}
		})
	}
	wg.Wait()
	stored, err := s.Start(t.Context(), streamA, state.Start{})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range got {
		if !sameStart(g, stored) {
			t.Fatalf("Start returned %v, and %v is stored", g, stored)
		}
	}
}

func testNames(t *testing.T, s state.Store) {
	for _, st := range []state.Stream{{Application: "", ARN: "arn"}, {Application: "app", ARN: ""}} {
		_, startErr := s.Start(t.Context(), st, horizon)
		_, shardsErr := s.Shards(t.Context(), st)
		_, claimErr := s.Claim(t.Context(), st, shard1, "", "me")
		for call, err := range map[string]error{
			"Start": startErr, "Shards": shardsErr, "Claim": claimErr,
			"Finish": s.Finish(t.Context(), st, shard1), "Forget": s.Forget(t.Context(), st, shard1),
		} {
			if err == nil {
				t.Errorf("%s(%+v) succeeded", call, st)
			}
		}
	}
	if _, err := s.Claim(t.Context(), streamA, "", "", "me"); err == nil {
		t.Error("Claim of no shard succeeded")
	}
	if _, err := s.Claim(t.Context(), streamA, shard1, "", ""); err == nil {
		t.Error("Claim by no owner succeeded")
	}
	if err := s.Finish(t.Context(), streamA, shard1, ""); err == nil {
		t.Error("Finish of no shard succeeded")
	}
}

func testClaim(t *testing.T, s state.Store) {
	first, _ := claim(t, s, streamA, shard2, shard1, "me")
	if want := (state.Shard{ID: shard2, Parent: shard1, Owner: "me", Epoch: first.Epoch}); first != want {
		t.Fatalf("Claim = %+v, want %+v", first, want)
	}
	if first.Epoch == 0 {
		t.Fatal("the first epoch is 0, which is that of no claim")
	}
	expect(t, s, streamA, first)
	again, _ := claim(t, s, streamA, shard2, "", "me")
	above(t, again, first)
	if again.Parent != shard1 {
		t.Fatalf("a claim that knows no parent made it %q, want the stored one", again.Parent)
	}
}

func testClaimKeepsPosition(t *testing.T, s state.Store) {
	_, l := claim(t, s, streamA, shard1, "", "me")
	checkpoint(t, s, at(l, number(123)))
	succeeds(t, "Release", s.Release(t.Context(), l))
	for _, owner := range []string{"you", "you"} {
		got, _ := claim(t, s, streamA, shard1, "", owner)
		if got.Position != (state.Position{Sequence: number(123)}) {
			t.Fatalf("after the claim of %s the position is %+v, want 123", owner, got.Position)
		}
		expect(t, s, streamA, got)
	}
}

func testAhead(t *testing.T, s state.Store) {
	_, l := claim(t, s, streamA, shard1, "", "me")
	store := func(p state.Position) {
		t.Helper()
		checkpoint(t, s, state.Checkpoint{Lease: l, Position: p})
		if p.Finished {
			p.Ahead = ""
		}
		if got := shard(t, s, streamA, shard1).Position; got != p {
			t.Fatalf("the position is %+v, want %+v", got, p)
		}
	}
	ahead := number(9) + " " + number(4)
	store(state.Position{Sequence: number(3), Ahead: ahead})
	for _, bad := range []string{"3 x", strings.Repeat("1", staterules.MaxAhead+1)} {
		if errs := s.Checkpoint(t.Context(), []state.Checkpoint{{Lease: l, Position: state.Position{Sequence: number(4), Ahead: bad}}}); errs == nil {
			t.Fatalf("Checkpoint took %.10q as what is settled ahead", bad)
		}
	}
	succeeds(t, "Release", s.Release(t.Context(), l))
	var sh state.Shard
	if sh, l = claim(t, s, streamA, shard1, "", "you"); sh.Position != (state.Position{Sequence: number(3), Ahead: ahead}) {
		t.Fatalf("the next owner gets the position %+v", sh.Position)
	}
	store(state.Position{Sequence: number(3)})
	store(state.Position{Sequence: number(4), Ahead: strings.Repeat("1", staterules.MaxAhead)})
	store(state.Position{Sequence: number(5)})
	store(state.Position{Sequence: number(5), Ahead: ahead})
	store(state.Position{Sequence: number(9), Finished: true, Ahead: ahead})
}

func testHeld(t *testing.T, s state.Store) {
	mine, l := claim(t, s, streamA, shard1, "", "me")
	succeeds(t, "Heartbeat", s.Heartbeat(t.Context(), "me"))
	_, err := s.Claim(t.Context(), streamA, shard1, "", "you")
	fails(t, "Claim of a held shard", err, state.ErrHeld)
	expect(t, s, streamA, mine)
	checkpoint(t, s, at(l, number(1)))
	succeeds(t, "Release", s.Release(t.Context(), l))
	yours, _ := claim(t, s, streamA, shard1, "", "you")
	above(t, yours, mine)
}

func testClaimRace(t *testing.T, s state.Store) {
	var wg sync.WaitGroup
	var won atomic.Int32
	for i := range 16 {
		wg.Go(func() {
			_, err := s.Claim(t.Context(), streamA, shard1, "", fmt.Sprint("owner ", i))
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, state.ErrHeld):
				t.Errorf("Claim: %v", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d of 16 owners have the shard, want 1", won.Load())
	}
}

func testChildEpoch(t *testing.T, s state.Store) {
	var parent state.Shard
	for range 5 {
		parent, _ = claim(t, s, streamA, shard1, "", "me")
	}
	child, _ := claim(t, s, streamA, shard2, shard1, "me")
	above(t, child, parent)
	grandchild, _ := claim(t, s, streamA, shard3, shard2, "me")
	above(t, grandchild, child)
	// If a claim names no parent, the stored parent counts.
	for range 5 {
		parent, _ = claim(t, s, streamA, shard1, "", "me")
	}
	again, _ := claim(t, s, streamA, shard2, "", "me")
	above(t, again, parent)
	// A parent trimmed before the poller saw it is not stored.
	orphan, _ := claim(t, s, streamA, shard4, "shardId-unknown", "me")
	if orphan.Epoch == 0 || orphan.Parent != "shardId-unknown" {
		t.Fatalf("orphan: %+v", orphan)
	}
	shards, err := s.Shards(t.Context(), streamA)
	if err != nil || len(shards) != 4 {
		t.Fatalf("%d shards are stored (%v), want the 4 that were claimed: %+v", len(shards), err, shards)
	}
}

func testCheckpoint(t *testing.T, s state.Store) {
	sh, l := claim(t, s, streamA, shard1, "", "me")
	for _, seq := range []string{"", "000000000000000000001", "9", "10", "10"} {
		checkpoint(t, s, at(l, seq))
		sh.Position.Sequence = seq
		expect(t, s, streamA, sh)
	}
	if errs := s.Checkpoint(t.Context(), nil); errs != nil {
		t.Fatalf("Checkpoint of nothing: %v", errs)
	}
}

func testLeaseLost(t *testing.T, s state.Store) {
	_, old := claim(t, s, streamA, shard1, "", "me")
	checkpoint(t, s, at(old, number(5)))
	now, current := claim(t, s, streamA, shard1, "", "me")
	wrongOwner := current
	wrongOwner.Owner = "you"
	noOwner := current
	noOwner.Owner = ""
	for _, l := range []state.Lease{old, wrongOwner, noOwner} {
		checkpointErr(t, s, at(l, number(6)), state.ErrLeaseLost)
		checkpointErr(t, s, end(l, ""), state.ErrLeaseLost)
		fails(t, "Release", s.Release(t.Context(), l), state.ErrLeaseLost)
	}
	expect(t, s, streamA, now)
	checkpoint(t, s, at(current, number(6)))
}

func testCheckpointUnknown(t *testing.T, s state.Store) {
	l := state.Lease{Stream: streamA, ShardID: shard1}
	checkpointErr(t, s, at(l, number(1)), state.ErrLeaseLost)
	l.Owner, l.Epoch = "me", 1
	checkpointErr(t, s, at(l, number(1)), state.ErrLeaseLost)
	if shards, err := s.Shards(t.Context(), streamA); err != nil || len(shards) != 0 {
		t.Fatalf("a refused checkpoint stored %+v (%v)", shards, err)
	}
}

func testRegress(t *testing.T, s state.Store) {
	// Each is greater than the one before it, as a number.
	order := []string{
		"", "000000000000000000001", "2", "0010",
		"990000000000000000000", "1000000000000000000000",
		"6200000000002513011398", "6300000000002513012315",
		strings.Repeat("9", 39), "1" + strings.Repeat("0", 39), strings.Repeat("9", 40),
	}
	sh, l := claim(t, s, streamA, shard1, "", "me")
	for i, seq := range order {
		checkpoint(t, s, at(l, seq))
		for _, before := range order[:i] {
			checkpointErr(t, s, at(l, before), state.ErrRegress)
		}
		sh.Position.Sequence = seq
		expect(t, s, streamA, sh)
	}
}

func testCheckpointMany(t *testing.T, s state.Store) {
	_, l1 := claim(t, s, streamA, shard1, "", "me")
	_, l2 := claim(t, s, streamA, shard2, "", "me")
	_, l3 := claim(t, s, streamA, shard3, "", "me")
	checkpoint(t, s, at(l1, number(1)), at(l2, number(2)), at(l3, number(3)))
	lost := l2
	lost.Epoch--
	errs := s.Checkpoint(t.Context(), []state.Checkpoint{at(l1, number(11)), at(lost, number(12)), at(l3, number(1)), at(l1, number(21))})
	if len(errs) != 4 || errs[0] != nil || !errors.Is(errs[1], state.ErrLeaseLost) || !errors.Is(errs[2], state.ErrRegress) || errs[3] != nil {
		t.Fatalf("Checkpoint = %v, want [nil, ErrLeaseLost, ErrRegress, nil]", errs)
	}
	for id, want := range map[string]string{shard1: number(21), shard2: number(2), shard3: number(3)} {
		if got := shard(t, s, streamA, id).Position; got != (state.Position{Sequence: want}) {
			t.Errorf("%s is at %v, want %s", id, got, want)
		}
	}
}

func testCheckpointInvalid(t *testing.T, s state.Store) {
	sh, l := claim(t, s, streamA, shard1, "", "me")
	for _, seq := range []string{"LATEST", "SHARD_END", "-1", "1.5", " 1", strings.Repeat("1", 41)} {
		if errs := s.Checkpoint(t.Context(), []state.Checkpoint{at(l, seq)}); len(errs) != 1 || errs[0] == nil {
			t.Errorf("Checkpoint(%q) = %v, want an error", seq, errs)
		}
	}
	expect(t, s, streamA, sh)
}

func testFinished(t *testing.T, s state.Store) {
	sh, l := claim(t, s, streamA, shard1, "", "me")
	checkpoint(t, s, at(l, number(7)))
	checkpoint(t, s, end(l, ""))
	sh.Position = state.Position{Sequence: number(7), Finished: true}
	expect(t, s, streamA, sh)
	checkpoint(t, s, end(l, ""))
	checkpoint(t, s, end(l, number(7)))
	checkpoint(t, s, end(l, number(8)))
	sh.Position.Sequence = number(8)
	expect(t, s, streamA, sh)
	checkpointErr(t, s, at(l, number(9)), state.ErrRegress)
	checkpointErr(t, s, end(l, number(7)), state.ErrRegress)
	expect(t, s, streamA, sh)
	again, _ := claim(t, s, streamA, shard1, "", "me")
	if !again.Position.Finished {
		t.Fatal("a claim opened a finished shard again")
	}

	empty, le := claim(t, s, streamA, shard2, "", "me")
	checkpoint(t, s, end(le, ""))
	empty.Position.Finished = true
	expect(t, s, streamA, empty)
}

func testFinish(t *testing.T, s state.Store) {
	_, l := claim(t, s, streamA, shard2, "", "me")
	checkpoint(t, s, at(l, number(4)))
	stored := shard(t, s, streamA, shard2)
	succeeds(t, "Finish", s.Finish(t.Context(), streamA, shard1, shard2, shard3))
	succeeds(t, "Finish of none", s.Finish(t.Context(), streamA))
	for _, id := range []string{shard1, shard3} {
		expect(t, s, streamA, state.Shard{ID: id, Position: state.Position{Finished: true}})
	}
	expect(t, s, streamA, stored)
	checkpoint(t, s, at(l, number(5)))
	child, _ := claim(t, s, streamA, shard4, shard1, "me")
	if child.Position != (state.Position{}) || child.Epoch == 0 {
		t.Fatalf("child of a finished shard: %+v", child)
	}
}

func testRelease(t *testing.T, s state.Store) {
	sh, l := claim(t, s, streamA, shard1, "", "me")
	checkpoint(t, s, at(l, number(3)))
	succeeds(t, "Release", s.Release(t.Context(), l))
	sh.Owner, sh.Position.Sequence = "", number(3)
	expect(t, s, streamA, sh)
	checkpointErr(t, s, at(l, number(4)), state.ErrLeaseLost)
	fails(t, "second Release", s.Release(t.Context(), l), state.ErrLeaseLost)
	l.ShardID = shard2
	fails(t, "Release of a shard that is not stored", s.Release(t.Context(), l), state.ErrLeaseLost)
	again, _ := claim(t, s, streamA, shard1, "", "me")
	above(t, again, sh)
}

func testApart(t *testing.T, s state.Store) {
	recreated, other := streamA, streamA
	recreated.ARN = strings.Replace(streamA.ARN, "2026-01-01", "2026-02-02", 1)
	other.Application = "other"
	// Names that collide if they are joined carelessly.
	joined := []state.Stream{{Application: "a/", ARN: "b"}, {Application: "a", ARN: "/b"}, {Application: "a#", ARN: "b"}, {Application: "a", ARN: "#b"}}
	all := append([]state.Stream{streamA, recreated, other}, joined...)
	leases := make([]state.Lease, len(all))
	for i, st := range all {
		noStart(t, s, st)
		want := latest()
		want.At = want.At.AddDate(0, 0, i)
		starts(t, s, st, want, want)
		var sh state.Shard
		sh, leases[i] = claim(t, s, st, shard1, "", fmt.Sprint("owner ", i))
		if sh.Epoch != 1 || sh.Position != (state.Position{}) {
			t.Fatalf("a fresh stream knows %+v", sh)
		}
		checkpoint(t, s, at(leases[i], number(i+1)))
	}
	for i, st := range all {
		shards, err := s.Shards(t.Context(), st)
		want := state.Shard{ID: shard1, Owner: fmt.Sprint("owner ", i), Epoch: 1, Position: state.Position{Sequence: number(i + 1)}}
		if err != nil || !slices.Equal(shards, []state.Shard{want}) {
			t.Fatalf("shards of %v: %+v, %v; want %+v", st, shards, err, want)
		}
	}
	crossed := leases[0]
	crossed.Stream = other
	checkpointErr(t, s, at(crossed, number(99)), state.ErrLeaseLost)
}

func testStreams(t *testing.T, s state.Store) {
	of := func(app, arn string) state.Stream { return state.Stream{Application: app, ARN: arn} }
	listed := func(app string, want ...state.Stream) {
		t.Helper()
		if got, err := s.Streams(t.Context(), app); err != nil || !slices.Equal(got, want) {
			t.Fatalf("Streams(%s) = %v, %v; want %v", app, got, err, want)
		}
	}
	// A failed request about a stream stores nothing.
	noStart(t, s, of("app", "z"))
	if _, err := s.Shards(t.Context(), of("app", "z")); err != nil {
		t.Fatal(err)
	}
	succeeds(t, "Finish", s.Finish(t.Context(), of("app", "z")))
	succeeds(t, "Forget", s.Forget(t.Context(), of("app", "z"), shard1))
	listed("app")
	starts(t, s, of("app", "b"), horizon, horizon)
	listed("app", of("app", "b"))
	claim(t, s, of("app", "c"), shard1, "", "me")
	succeeds(t, "Finish", s.Finish(t.Context(), of("app", "a"), shard1))
	claim(t, s, of("app2", "b"), shard1, "", "me")
	claim(t, s, of("ap", "p/b"), shard1, "", "me")
	listed("app", of("app", "a"), of("app", "b"), of("app", "c"))
	listed("app2", of("app2", "b"))
	listed("other")
	if got, err := s.Streams(t.Context(), ""); err == nil {
		t.Errorf("Streams of no application = %v, want an error", got)
	}
}

func testCancelled(t *testing.T, s state.Store) {
	sh, l := claim(t, s, streamA, shard1, "", "me")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, claimErr := s.Claim(ctx, streamA, shard1, "", "me")
	_, startErr := s.Start(ctx, streamA, horizon)
	_, shardsErr := s.Shards(ctx, streamA)
	_, streamsErr := s.Streams(ctx, streamA.Application)
	errs := s.Checkpoint(ctx, []state.Checkpoint{at(l, number(1))})
	if len(errs) != 1 {
		t.Errorf("a cancelled Checkpoint of one position: %d errors", len(errs))
	}
	cancelled(t, map[string]error{
		"Claim": claimErr, "Start": startErr, "Shards": shardsErr, "Streams": streamsErr,
		"Checkpoint": errors.Join(errs...),
		"Release":    s.Release(ctx, l),
		"Finish":     s.Finish(ctx, streamA, shard2),
		"Forget":     s.Forget(ctx, streamA, shard2),
		"Heartbeat":  s.Heartbeat(ctx, "me"),
	})
	if shards, err := s.Shards(t.Context(), streamA); err != nil || !slices.Equal(shards, []state.Shard{sh}) {
		t.Errorf("cancelled calls have stored %+v, %v; want %+v", shards, err, sh)
	}
	noStart(t, s, streamA)
}

// cancelled wants the error of a cancelled context from each call.
func cancelled(t *testing.T, calls map[string]error) {
	t.Helper()
	for call, err := range calls {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", call, err)
		}
	}
}
