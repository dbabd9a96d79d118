package boltstate

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/state"
)

// count stores one position after another, and a letter beside each, and says
// so when they are stored, until it is killed.
func count(path string) error {
	s, err := Open(path, Options{})
	if err != nil {
		return err
	}
	sh, err := s.Claim(ctx(), stream, "shard", "", fmt.Sprint(os.Getpid()))
	if err != nil {
		return err
	}
	l := state.Lease{Stream: stream, ShardID: "shard", Owner: sh.Owner, Epoch: sh.Epoch}
	n := recordtest.Nth(sh.Position.Sequence) // 0 at the beginning
	for {
		n++
		if err := s.PutLetter(ctx(), "app", fmt.Sprintf("%06d", n), make([]byte, n%5000)); err != nil {
			return err
		}
		if errs := s.Checkpoint(ctx(), []state.Checkpoint{{Lease: l, Position: position(n)}}); errs != nil {
			return errs[0]
		}
		fmt.Println("stored", n)
	}
}

// A process that is killed at any moment, also while it creates the file, has
// stored all that it said it had.
func TestKilledLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	at := 0 // what is stored
	for round := range 20 {
		cmd := child("count", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said, lines := at, bufio.NewScanner(out)
		read := func() bool {
			if !lines.Scan() {
				return false
			}
			n, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "stored "))
			if err != nil {
				t.Fatalf("the other process: %s", lines.Text())
			}
			said = n
			return true
		}
		for range rand.IntN(1 + round*2) {
			read()
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for read() {
		}
		_ = cmd.Wait()

		s := open(t, path)
		shards, err := s.Shards(ctx(), stream)
		if err != nil {
			t.Fatal(err)
		}
		stored := 0
		if len(shards) > 0 {
			stored = recordtest.Nth(shards[0].Position.Sequence)
		}
		letters, err := s.ListLetters(ctx(), "app", "", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if stored < said || stored > said+1 || len(letters) < stored || len(letters) > stored+1 {
			t.Fatalf("round %d: %d was acknowledged; position %d and %d letters are stored", round, said, stored, len(letters))
		}
		at = stored
		mustClose(t, s)
	}
	if at == 0 {
		t.Error("nothing was ever stored")
	}
}
