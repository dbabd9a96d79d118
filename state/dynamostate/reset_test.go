package dynamostate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

// read leaves a stream with two shards at position 7, of a worker that has left.
func read(t *testing.T, table rows.Table, st state.Stream) {
	t.Helper()
	s := over(table)
	if _, err := s.Start(t.Context(), st, state.Start{Position: "TRIM_HORIZON"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"one", "two"} {
		sh, err := s.Claim(t.Context(), st, id, "", "me")
		if err != nil {
			t.Fatal(err)
		}
		if errs := s.Checkpoint(t.Context(), []state.Checkpoint{{Lease: state.Lease{Stream: st, ShardID: id, Owner: "me", Epoch: sh.Epoch}, Position: at(7)}}); errs != nil {
			t.Fatal(errs)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func ids(t *testing.T, s *Store, st state.Stream) (all []string) {
	t.Helper()
	shards, err := s.Shards(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	for _, sh := range shards {
		all = append(all, fmt.Sprint(sh.ID, " ", number(sh.Position)))
	}
	return all
}

func TestReset(t *testing.T) {
	table := new(memory)
	other := state.Stream{Application: "zoo", ARN: stream.ARN}
	read(t, table, stream)
	read(t, table, other)
	s := over(table)
	if apps, err := s.Applications(t.Context()); err != nil || !slices.Equal(apps, []string{"app", "zoo"}) {
		t.Errorf("applications %q, %v", apps, err)
	}
	if err := s.ResetShards(t.Context(), stream, "one", "none"); err != nil || !slices.Equal(ids(t, s, stream), []string{"two 7"}) {
		t.Errorf("ResetShards: %v, %q", err, ids(t, s, stream))
	}
	if start, err := s.Start(t.Context(), stream, state.Start{}); err != nil || start.Position != "TRIM_HORIZON" {
		t.Errorf("the start of reset shards: %+v, %v", start, err)
	}
	latest := state.Start{Position: "LATEST", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if err := s.ResetStream(t.Context(), stream, latest); err != nil || ids(t, s, stream) != nil {
		t.Errorf("ResetStream: %v, %q", err, ids(t, s, stream))
	}
	if start, err := s.Start(t.Context(), stream, state.Start{}); err != nil || start != latest {
		t.Errorf("the new start: %+v, %v", start, err)
	}
	if err := s.ResetStream(t.Context(), stream, state.Start{Position: "LATEST"}); err == nil {
		t.Error("a start without its time was stored")
	}
	for range 2 {
		if err := s.ResetStream(t.Context(), stream, state.Start{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Start(t.Context(), stream, state.Start{}); !errors.Is(err, state.ErrNoStart) {
		t.Errorf("a stream that was forgotten: %v", err)
	}
	if got, err := s.Streams(t.Context(), "app"); err != nil || len(got) != 0 {
		t.Errorf("streams after the reset of the only one: %v, %v", got, err)
	}
	if got := ids(t, s, other); len(got) != 2 {
		t.Errorf("another application: %q", got)
	}
}

// Nothing is reset under a worker that lives, and a dead worker cannot come
// back to reset shards.
func TestResetBesideAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		worker, s := over(table), over(table)
		if _, err := worker.Claim(t.Context(), stream, "one", "", "me"); err != nil {
			t.Fatal(err)
		}
		for name, reset := range map[string]func() error{
			"ResetShards": func() error { return s.ResetShards(t.Context(), stream, "one") },
			"ResetStream": func() error { return s.ResetStream(t.Context(), stream, state.Start{}) },
		} {
			done := make(chan error)
			go func() { done <- reset() }()
			var err error
			for ended := false; !ended; {
				select {
				case err = <-done:
					ended = true
				case <-time.After(time.Second):
					if err := worker.Heartbeat(t.Context(), "me"); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err == nil || !strings.Contains(err.Error(), "worker me of application app runs") || len(ids(t, s, stream)) != 1 {
				t.Fatalf("%s beside a worker: %v", name, err)
			}
		}
		if err := s.ResetShards(t.Context(), stream, "one"); err != nil || len(ids(t, s, stream)) != 0 {
			t.Fatalf("ResetShards of a dead worker's shard: %v", err)
		}
		if err := worker.Heartbeat(t.Context(), "me"); !errors.Is(err, state.ErrFenced) {
			t.Errorf("heartbeat of the dead worker: %v", err)
		}
	})
}

// A worker that has read its start before a reset stores nothing after it.
func TestResetOfAStreamThatIsBegun(t *testing.T) {
	table := new(memory)
	worker, s := over(table), over(table)
	latest := state.Start{Position: "LATEST", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if _, err := worker.Start(t.Context(), stream, latest); err != nil {
		t.Fatal(err)
	}
	if err := s.ResetStream(t.Context(), stream, state.Start{Position: "TRIM_HORIZON"}); err != nil {
		t.Fatal(err)
	}
	want := "was reset: start this worker again"
	if err := worker.Finish(t.Context(), stream, "closed"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Finish by a worker from before the reset: %v", err)
	}
	if sh, err := worker.Claim(t.Context(), stream, "one", "", "me"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Claim by a worker from before the reset: %+v, %v", sh, err)
	}
	if left := ids(t, s, stream); left != nil {
		t.Errorf("shards after the reset: %q", left)
	}
	if _, err := over(table).Claim(t.Context(), stream, "one", "", "young"); err != nil {
		t.Errorf("Claim by a worker from after the reset: %v", err)
	}
}

// Any number of dead workers is watched at a time.
func TestResetAfterManyCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		for i := range 20 {
			if _, err := over(table).Claim(t.Context(), stream, fmt.Sprint(i), "", fmt.Sprint("dead", i)); err != nil {
				t.Fatal(err)
			}
		}
		s := over(table)
		if err := s.ResetStream(t.Context(), stream, state.Start{}); err != nil || ids(t, s, stream) != nil {
			t.Errorf("ResetStream: %v, %q", err, ids(t, s, stream))
		}
	})
}

// A reset that is interrupted anywhere is repeated, or nobody reads the stream.
func TestResetInterrupted(t *testing.T) {
	for crash, done := 1, false; !done; crash++ {
		table := new(memory)
		read(t, table, stream)
		s := over(table)
		n := 0
		table.Fault = func(string, rows.Key) mishap {
			if n++; n >= crash {
				return mishap{Err: errLost}
			}
			return mishap{}
		}
		start := state.Start{Position: "LATEST", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
		err := s.ResetStream(t.Context(), stream, start)
		done = n < crash
		table.Fault = nil
		had, startErr := over(table).Start(t.Context(), stream, state.Start{})
		switch left := ids(t, s, stream); {
		case err == nil && (had != start || left != nil):
			t.Fatalf("after a reset: %+v, %v, %q", had, startErr, left)
		case err != nil && startErr == nil && !(had.Position == "TRIM_HORIZON" && len(left) == 2):
			t.Fatalf("a reset that was interrupted at request %d left a start %+v and shards %q", crash, had, left)
		case err != nil && startErr != nil && !strings.Contains(startErr.Error(), "was interrupted: repeat it"):
			t.Fatal(startErr)
		}
		if err := s.ResetStream(t.Context(), stream, start); err != nil || ids(t, s, stream) != nil {
			t.Fatalf("repeated: %v, %q", err, ids(t, s, stream))
		}
	}
}
