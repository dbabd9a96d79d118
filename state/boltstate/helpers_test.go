package boltstate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/state"
)

var stream = state.Stream{Application: "app", ARN: "arn:aws:dynamodb:us-east-1:1:table/t/stream/1"}

// position is that of the nth record.
func position(n int) state.Position {
	return state.Position{Sequence: string(recordtest.Sequence(n))}
}

func ctx() context.Context { return context.Background() }

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

func mustClose(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// wantAll checks that the error's text holds every one of parts.
func wantAll(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

// full returns a file after all steps, and its contents.
func full(t *testing.T) (image []byte, holds string) {
	t.Helper()
	s := open(t, filepath.Join(t.TempDir(), "state.db"))
	defer mustClose(t, s)
	for _, commit := range commits(t, s) {
		commit()
	}
	return readFile(t, s.path), contents(t, s)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// opens wants a file of these bytes to hold one of the contents, and to work.
func opens(t *testing.T, name, path string, image []byte, want ...string) {
	t.Helper()
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	s.db.NoSync, s.db.NoGrowSync = true, true // many files
	got := contents(t, s)
	if !slices.Contains(want, got) {
		t.Fatalf("%s: the file holds\n%.300s, want\n%.300s", name, got, want)
	}
	sh, err := s.Claim(ctx(), stream, "another", "", "me")
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	l := state.Lease{Stream: stream, ShardID: "another", Owner: "me", Epoch: sh.Epoch}
	if errs := s.Checkpoint(ctx(), []state.Checkpoint{{Lease: l, Position: position(7)}}); errs != nil {
		t.Fatalf("%s: %v", name, errs)
	}
	later := contents(t, s)
	mustClose(t, s)
	s = open(t, path)
	defer mustClose(t, s)
	if got := contents(t, s); got != later || !strings.Contains(got, "another") {
		t.Fatalf("%s: after a restart the file holds\n%.300s, want\n%.300s", name, got, later)
	}
}

// commits are steps that change a file in different ways, each in one
// transaction: of a few and of many pages, with growth, with pages that become
// free.
func commits(t *testing.T, s *Store) []func() {
	var leases []state.Lease
	claim := func() {
		id := fmt.Sprintf("shard%03d", len(leases))
		sh, err := s.Claim(ctx(), stream, id, "", "me")
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, state.Lease{Stream: stream, ShardID: id, Owner: "me", Epoch: sh.Epoch})
	}
	n := 0
	checkpoint := func() {
		n++
		var cs []state.Checkpoint
		for _, l := range leases {
			cs = append(cs, state.Checkpoint{Lease: l, Position: position(n)})
		}
		if errs := s.Checkpoint(ctx(), cs); errs != nil {
			t.Fatal(errs)
		}
	}
	letter := func(size int) func() {
		return func() {
			n++
			if err := s.PutLetter(ctx(), "app", fmt.Sprintf("%03d", n), bytes.Repeat([]byte{byte(n)}, size)); err != nil {
				t.Fatal(err)
			}
		}
	}
	finish := func() {
		var ids []string
		for i := range 200 {
			ids = append(ids, fmt.Sprintf("finished%03d", i))
		}
		if err := s.Finish(ctx(), stream, ids...); err != nil {
			t.Fatal(err)
		}
	}
	empty := func() {
		letters, err := s.ListLetters(ctx(), "app", "", 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteLetter(ctx(), "app", letters[0].ID); err != nil {
			t.Fatal(err)
		}
	}
	start := func() {
		if _, err := s.Start(ctx(), stream, state.Start{Position: "TRIM_HORIZON"}); err != nil {
			t.Fatal(err)
		}
	}
	for range 60 {
		claim()
	}
	return []func(){start, claim, checkpoint, letter(10), finish, checkpoint, letter(9000), checkpoint, letter(30000), empty, checkpoint, letter(60000), checkpoint}
}

// contents is all that a store knows, as text.
func contents(t *testing.T, s *Store) string {
	t.Helper()
	start, err := s.Start(ctx(), stream, state.Start{})
	if err != nil && !errors.Is(err, state.ErrNoStart) {
		t.Fatal(err)
	}
	shards, err := s.Shards(ctx(), stream)
	if err != nil {
		t.Fatal(err)
	}
	letters, err := s.ListLetters(ctx(), "app", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(start, shards, letters)
}
