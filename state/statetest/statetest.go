// Package statetest is the conformance suite of state.Store, state.Letters,
// state.Labels and state.Values: every sentence of their contracts has a test
// here.
package statetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice/state"
)

// Run tests a store. open returns a new, empty store; the suite closes it. Run
// also tests state.Letters and state.Values if the store implements them. Owners
// tests how long an owner lives.
func Run(t *testing.T, open func(t *testing.T) state.Store) {
	closed := func(t *testing.T) state.Store {
		s := open(t)
		t.Cleanup(func() { closeStore(t, s) })
		return s
	}
	runAll(t, closed, []test[state.Store]{
		{"start", testStart},
		{"start refused", testStartRefused},
		{"start of one of many", testStartRace},
		{"names are required", testNames},
		{"claim", testClaim},
		{"claim leaves the position", testClaimKeepsPosition},
		{"claim of a living owner's shard", testHeld},
		{"claim of one of many", testClaimRace},
		{"epoch of a child", testChildEpoch},
		{"checkpoint", testCheckpoint},
		{"checkpoint under a lost lease", testLeaseLost},
		{"checkpoint of a shard that is not stored", testCheckpointUnknown},
		{"checkpoint before the stored one", testRegress},
		{"checkpoint of many", testCheckpointMany},
		{"checkpoint of records settled ahead", testAhead},
		{"checkpoint of what is no sequence number", testCheckpointInvalid},
		{"end of a shard", testFinished},
		{"finish", testFinish},
		{"forget", testForget},
		{"forgotten shards of applications and streams are apart", testForgetApart},
		{"claim of a forgotten shard", testForgotten},
		{"streams", testStreams},
		{"release", testRelease},
		{"applications and streams are apart", testApart},
		{"hundreds at once", testHundreds},
		{"checkpoints at the same time", testCheckpointRace},
		{"claim beside checkpoints", testClaimCheckpointRace},
		{"concurrent use", testConcurrent},
		{"cancelled", testCancelled},
	})
	RunLetters(t, as[state.Letters](closed))
	runValues(t, as[state.Values](closed))
}

// as returns a store as an S, or nil: a store of positions only.
func as[S any](open func(t *testing.T) state.Store) func(t *testing.T) S {
	return func(t *testing.T) S {
		s, _ := open(t).(S)
		return s
	}
}

// RunLetters tests a store of letters only. open returns a new, empty store.
func RunLetters(t *testing.T, open func(t *testing.T) state.Letters) {
	runAll(t, open, []test[state.Letters]{
		{"letters", ofLetters(testNamed)},
		{"letters of applications are apart", ofLetters(testNamedApart)},
		{"letters are copied", ofLetters(testNamedCopied)},
		{"letters in pages", testLettersPages},
		{"letters of any bytes and size", testLettersBytes},
		{"letters, cancelled", ofLetters(testNamedCancelled)},
		{"labels", testLabels},
	})
}

// test is a test of a store.
type test[S any] struct {
	name string
	run  func(t *testing.T, s S)
}

// runAll runs each test with a store of its own. A store that is nil has no tests.
func runAll[S any](t *testing.T, open func(t *testing.T) S, tests []test[S]) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if s := open(t); any(s) != nil {
				test.run(t, s)
			}
		})
	}
}

// succeeds ends the test if a call failed.
func succeeds(t *testing.T, call string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", call, err)
	}
}

// fails ends the test unless a call failed with target.
func fails(t *testing.T, call string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("%s: %v, want %v", call, err, target)
	}
}

// above ends the test unless the epoch of a shard is above another's.
func above(t *testing.T, later, earlier state.Shard) {
	t.Helper()
	if later.Epoch <= earlier.Epoch {
		t.Fatalf("epoch %d of %s after %d of %s: want a greater one", later.Epoch, later.ID, earlier.Epoch, earlier.ID)
	}
}

// RunDurable also tests that everything survives the end of the process. newStore
// returns a function that opens one store repeatedly; the suite closes each before
// the next.
func RunDurable(t *testing.T, newStore func(t *testing.T) (open func() state.Store)) {
	Run(t, func(t *testing.T) state.Store { return newStore(t)() })
	t.Run("after a restart", func(t *testing.T) { testRestart(t, newStore(t)) })
}

var (
	streamA = state.Stream{Application: "app", ARN: "arn:aws:dynamodb:us-east-1:1:table/a/stream/2026-01-01T00:00:00.000"}
	horizon = state.Start{Position: "TRIM_HORIZON"}
)

const (
	shard1 = "shardId-00000001414576573621-f55eea83"
	shard2 = "shardId-00000001414576573622-00000002"
	shard3 = "shardId-00000001414576573623-00000003"
)

func closeStore(t *testing.T, s state.Store) {
	t.Helper()
	succeeds(t, "Close", s.Close())
}

func claim(t *testing.T, s state.Store, st state.Stream, id, parent, owner string) (state.Shard, state.Lease) {
	t.Helper()
	sh, err := s.Claim(t.Context(), st, id, parent, owner)
	if err != nil {
		t.Fatalf("Claim(%s, %s): %v", id, owner, err)
	}
	return sh, state.Lease{Stream: st, ShardID: id, Owner: owner, Epoch: sh.Epoch}
}

// number is a sequence number as wide as those of AWS.
func number(n int) string { return fmt.Sprintf("89359858%020d", n) }

func at(l state.Lease, sequence string) state.Checkpoint {
	return state.Checkpoint{Lease: l, Position: state.Position{Sequence: sequence}}
}

func end(l state.Lease, sequence string) state.Checkpoint {
	return state.Checkpoint{Lease: l, Position: state.Position{Sequence: sequence, Finished: true}}
}

func checkpoint(t *testing.T, s state.Store, cs ...state.Checkpoint) {
	t.Helper()
	if errs := s.Checkpoint(t.Context(), cs); errs != nil {
		t.Fatalf("Checkpoint: %v", errors.Join(errs...))
	}
}

// checkpointErr makes one checkpoint that must fail with target.
func checkpointErr(t *testing.T, s state.Store, c state.Checkpoint, target error) {
	t.Helper()
	errs := s.Checkpoint(t.Context(), []state.Checkpoint{c})
	if len(errs) != 1 || !errors.Is(errs[0], target) {
		t.Fatalf("Checkpoint(%v) = %v, want one error: %v", c.Position, errs, target)
	}
}

func shard(t *testing.T, s state.Store, st state.Stream, id string) state.Shard {
	t.Helper()
	shards, err := s.Shards(t.Context(), st)
	if err != nil {
		t.Fatalf("Shards: %v", err)
	}
	for _, sh := range shards {
		if sh.ID == id {
			return sh
		}
	}
	t.Fatalf("shard %s is not stored: %+v", id, shards)
	return state.Shard{}
}

func expect(t *testing.T, s state.Store, st state.Stream, want state.Shard) {
	t.Helper()
	if got := shard(t, s, st, want.ID); got != want {
		t.Fatalf("stored: %+v\nwant:   %+v", got, want)
	}
}

// starts makes a Start that must return want.
func starts(t *testing.T, s state.Store, st state.Stream, given, want state.Start) {
	t.Helper()
	if got, err := s.Start(t.Context(), st, given); err != nil || !sameStart(got, want) {
		t.Fatalf("Start(%v, %v) = %v, %v; want %v", st, given, got, err, want)
	}
}

// noStart wants that a stream has no start.
func noStart(t *testing.T, s state.Store, st state.Stream) {
	t.Helper()
	_, err := s.Start(t.Context(), st, state.Start{})
	fails(t, "Start without a position", err, state.ErrNoStart)
}

func sameStart(a, b state.Start) bool { return a.Position == b.Position && a.At.Equal(b.At) }

func latest() state.Start {
	return state.Start{Position: "LATEST", At: time.Date(2026, 3, 4, 5, 6, 7, 8000000, time.UTC)}
}
