package boltstate

import (
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/sluicehq/sluice/state"
)

// A program that knows nothing of values reads a file that has some, and a file
// of such a program takes values.
func TestValuesKeepTheFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	st := state.Stream{Application: "app", ARN: "arn"}
	if _, err := s.Start(t.Context(), st, state.Start{Position: "TRIM_HORIZON"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // as an older program leaves it
		t.Fatal(err)
	}
	if s, err = Open(path, Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	for _, app := range []string{"app", "values only"} {
		if err := s.PutValue(t.Context(), app, "name", []byte("data")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.db.View(func(tx *bbolt.Tx) error {
		if format := string(tx.Bucket(metaBucket).Get(formatKey)); format != "1" {
			t.Errorf("the file is of format %s: an older program refuses it", format)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if streams, err := s.Streams(t.Context(), "app"); err != nil || len(streams) != 1 || streams[0] != st {
		t.Errorf("streams %v, %v", streams, err)
	}
	if streams, err := s.Streams(t.Context(), "values only"); err != nil || len(streams) != 0 {
		t.Errorf("streams of an application with values only: %v, %v", streams, err)
	}
	if letters, err := s.ListLetters(t.Context(), "values only", "", 10); err != nil || len(letters) != 0 {
		t.Errorf("letters of an application with values only: %v, %v", letters, err)
	}
}

// The heads of letters are what their lists are, but short.
func TestLetterHeads(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "state.db"))
	for id, data := range map[string]string{"1": "one", "2": "twenty", "3": ""} {
		if err := s.PutLetter(ctx(), "app", id, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	letters, err := s.ListLetterHeads(ctx(), "app", "1", 5, 4)
	if err != nil || len(letters) != 2 || letters[0].ID != "2" || string(letters[0].Data) != "twen" || letters[1].ID != "3" || len(letters[1].Data) != 0 {
		t.Errorf("%q, %v", letters, err)
	}
}
