package dynamostate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

const testShard = "shardId-00000001414576573621-f55eea83"

var (
	errLost = errors.New("the response is lost")
	stream  = state.Stream{Application: "app", ARN: "arn:aws:dynamodb:us-east-1:1:table/a/stream/2026-01-01T00:00:00.000"}
)

func at(n int) state.Position { return state.Position{Sequence: fmt.Sprintf("89359858%020d", n)} }

func number(p state.Position) (n int) {
	fmt.Sscan(strings.TrimLeft(strings.TrimPrefix(p.Sequence, "89359858"), "0"), &n)
	return n
}

// flawed returns a table of whose requests one in four goes wrong, in every way,
// while bad.
func flawed(r *rand.Rand, bad *bool) *memory {
	return &memory{Fault: func(string, rows.Key) mishap {
		if !*bad || r.IntN(4) > 0 {
			return mishap{}
		}
		switch r.IntN(3) {
		case 0:
			return mishap{Err: errLost}
		case 1:
			return mishap{Err: errLost, Made: true}
		}
		return mishap{Err: errLost, Late: time.Duration(1 + r.IntN(int(20*time.Second)))}
	}}
}

type worker struct {
	*Store
	name  string
	lease state.Lease
}

// claimSoon claims the shard once its owner was watched for long enough.
func (w *worker) claimSoon(t *testing.T) (sh state.Shard, err error) {
	for range 20 {
		if sh, err = w.Claim(t.Context(), stream, testShard, "", w.name); !errors.Is(err, state.ErrHeld) {
			break
		}
		time.Sleep(time.Second)
	}
	return sh, err
}

// Workers claim, checkpoint, release and fall silent, while requests fail, are made
// though their response is lost, or are made late. A position that a worker was
// told is stored stays stored; no shard goes back; no two workers can store under
// their leases; and in the end everything works again.
func TestRequestsGoWrong(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			r, bad := rand.New(rand.NewPCG(seed, 1)), true
			table := flawed(r, &bad)
			hire := func() *worker { return &worker{Store: over(table), name: fmt.Sprint("worker ", r.Uint64())} }
			all := []*worker{hire(), hire(), hire()}
			var stored int // the greatest position that was said to be stored
			var epoch uint64
			failed := func(err error) {
				for _, known := range []error{errLost, state.ErrLeaseLost, state.ErrHeld, state.ErrFenced, state.ErrRegress} {
					if err == nil || errors.Is(err, known) {
						return
					}
				}
				t.Fatalf("seed %d: %v", seed, err)
			}
			for range 200 {
				i := r.IntN(len(all))
				w := all[i]
				switch r.IntN(10) {
				case 0, 1:
					sh, err := w.Claim(t.Context(), stream, testShard, "", w.name)
					failed(err)
					if err != nil {
						break
					}
					if sh.Epoch <= epoch || number(sh.Position) < stored {
						t.Fatalf("seed %d: claimed %+v after epoch %d and position %d", seed, sh, epoch, stored)
					}
					w.lease, epoch = state.Lease{Stream: stream, ShardID: testShard, Owner: w.name, Epoch: sh.Epoch}, sh.Epoch
				case 2, 3, 4, 5:
					if w.lease.Epoch == 0 {
						break
					}
					next := stored + 1 + r.IntN(3)
					errs := w.Checkpoint(t.Context(), []state.Checkpoint{{Lease: w.lease, Position: at(next)}})
					if errs != nil {
						failed(errs[0])
						break
					}
					if w.lease.Epoch < epoch {
						t.Fatalf("seed %d: a position is stored under epoch %d, and %d was claimed", seed, w.lease.Epoch, epoch)
					}
					stored = next
				case 6:
					if w.lease.Epoch > 0 {
						failed(w.Release(t.Context(), w.lease))
					}
				case 7:
					time.Sleep(time.Duration(r.IntN(int(12 * time.Second))))
				case 8:
					failed(w.Heartbeat(t.Context(), w.name))
				case 9:
					if r.IntN(4) == 0 { // a crash
						all[i] = hire()
					}
				}
			}
			bad = false
			time.Sleep(time.Minute) // late requests are made
			w := hire()
			sh, err := w.claimSoon(t)
			if err != nil || number(sh.Position) < stored || sh.Epoch <= epoch {
				t.Fatalf("seed %d: in the end %+v, %v; want position %d and more than epoch %d", seed, sh, err, stored, epoch)
			}
		})
	}
}

// A worker is silent for longer than others wait, while its requests are late: its
// position that arrives after the claim is refused.
func TestLatePositionAfterTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fault mishap
		table := &memory{Fault: func(call string, k rows.Key) mishap {
			if call == "Write" && k.Sort == testShard {
				return fault
			}
			return mishap{}
		}}
		old, young := over(table), over(table)
		sh, err := old.Claim(t.Context(), stream, testShard, "", "old")
		if err != nil {
			t.Fatal(err)
		}
		lease := state.Lease{Stream: stream, ShardID: testShard, Owner: "old", Epoch: sh.Epoch}
		fault = mishap{Err: errLost, Late: time.Minute}
		if errs := old.Checkpoint(t.Context(), []state.Checkpoint{{Lease: lease, Position: at(7)}}); !errors.Is(errs[0], errLost) {
			t.Fatal(errs)
		}
		fault = mishap{}
		if _, err := young.Claim(t.Context(), stream, testShard, "", "young"); !errors.Is(err, state.ErrHeld) {
			t.Fatalf("claim of a shard whose owner was seen for the first time: %v, want ErrHeld", err)
		}
		sh, err = (&worker{Store: young, name: "young"}).claimSoon(t)
		if err != nil || number(sh.Position) != 0 {
			t.Fatalf("%+v, %v", sh, err)
		}
		time.Sleep(2 * time.Minute)
		after, err := young.Shards(t.Context(), stream)
		if err != nil || len(after) != 1 || after[0] != sh {
			t.Errorf("stored %+v, %v; want %+v: a late position was taken", after, err, sh)
		}
		if err := old.Heartbeat(t.Context(), "old"); !errors.Is(err, state.ErrFenced) {
			t.Errorf("heartbeat of the old worker: %v, want ErrFenced", err)
		}
	})
}

// A crash between any two writes of a large letter leaves no part behind, once the
// letter is written or deleted again; and nobody reads a letter in part.
func TestLetterInPartsAndCrashes(t *testing.T) {
	old, large := strings.Repeat("old", maxPart), strings.Repeat("new!", maxPart)
	for then, want := range map[string]int{"put": 6, "put small": 2, "delete": 1} {
		for crash, done := 1, false; !done; crash++ {
			table := new(memory)
			s := over(table)
			put := func(data string) error { return s.PutLetter(t.Context(), "app", "id", []byte(data)) }
			if err := put(old); err != nil {
				t.Fatal(err)
			}
			n := 0
			table.Fault = func(call string, _ rows.Key) mishap {
				if call != "Get" && call != "List" {
					n++
				}
				if n >= crash {
					return mishap{Err: errLost}
				}
				return mishap{}
			}
			err := put(large)
			done = n < crash
			table.Fault = nil
			data, ok, readErr := s.GetLetter(t.Context(), "app", "id")
			if !ok || readErr != nil || string(data) != old && string(data) != large || err == nil && string(data) != large {
				t.Fatalf("after a crash at write %d: %d bytes, %v, %v", crash, len(data), ok, readErr)
			}
			if l, err := s.ListLetters(t.Context(), "app", "", 10); err != nil || len(l) != 1 || string(l[0].Data) != string(data) {
				t.Fatalf("after a crash at write %d: listed %d letters, %v", crash, len(l), err)
			}
			switch then {
			case "put":
				err = put(large)
			case "put small":
				err = put("small")
			case "delete":
				err = s.DeleteLetter(t.Context(), "app", "id")
			}
			if err != nil {
				t.Fatal(err)
			}
			if have := table.Len(); have != want {
				t.Fatalf("after a crash at write %d and a %s the table has %d rows, want %d", crash, then, have, want)
			}
		}
	}
}

// The heads of letters are read without their parts.
func TestLetterHeads(t *testing.T) {
	table := new(memory)
	s := over(table)
	for id, data := range map[string]string{"1": "small", "2": strings.Repeat("large", maxPart)} {
		if err := s.PutLetter(t.Context(), "app", id, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	table.Fault = func(_ string, k rows.Key) mishap {
		if strings.HasPrefix(k.Partition, "letter#") {
			return mishap{Err: errors.New("a part was read")}
		}
		return mishap{}
	}
	heads, err := s.ListLetterHeads(t.Context(), "app", "", 10, 7)
	if err != nil || len(heads) != 2 || string(heads[0].Data) != "small" || string(heads[1].Data) != "largela" {
		t.Errorf("heads %q, %v", heads, err)
	}
}

// A newer release's rows are refused, and what it adds to rows of this format is
// kept.
func TestRowsOfOtherReleases(t *testing.T) {
	table := new(memory)
	s := over(table)
	sh, err := s.Claim(t.Context(), stream, testShard, "", "me")
	if err != nil {
		t.Fatal(err)
	}
	stored := func() rows.Row {
		row, err := table.Get(t.Context(), shardKey(stream, testShard))
		if err != nil {
			t.Fatal(err)
		}
		return row
	}
	type addition struct {
		Load int `dynamodbav:"load"`
	}
	if _, err := table.Write(t.Context(), stored(), encode(addition{7})); err != nil {
		t.Fatal(err)
	}
	lease := state.Lease{Stream: stream, ShardID: testShard, Owner: "me", Epoch: sh.Epoch}
	if errs := s.Checkpoint(t.Context(), []state.Checkpoint{{Lease: lease, Position: at(1)}}); errs != nil {
		t.Fatal(errs)
	}
	if have, err := decode[addition](stored()); err != nil || have.Load != 7 {
		t.Errorf("what a newer release added is %+v, %v", have, err)
	}
	newer := encode(struct{}{})
	newer[formatName] = encode(addition{format + 1})["load"]
	if _, err := table.Write(context.Background(), stored(), newer); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Shards(t.Context(), stream); err == nil || !strings.Contains(err.Error(), "a newer release wrote it") {
		t.Errorf("Shards of a newer format: %v", err)
	}
}
