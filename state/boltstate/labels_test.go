package boltstate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
)

// Letters of a file of format 1 are labelled once, also when that is cut off in
// the middle. From then on an older program refuses the file.
func TestLabelsOfAnOlderFile(t *testing.T) {
	const n = 5400
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path)
	if err := s.db.Update(func(tx *bbolt.Tx) error { // as the older program does
		b, err := grow(tx, []byte("app"), lettersBucket)
		for i := range n {
			err = errors.Join(err, b.Put([]byte(letterID(i)), fmt.Append(nil, "letter ", i)))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if f := fileFormat(t, s); f != "1" {
		t.Fatalf("format %s", f)
	}
	var labelled []string
	label := func(id string, data []byte) []byte {
		labelled = append(labelled, id)
		return append([]byte("label of "), data...)
	}
	// Another letter comes before, one is deleted, and the first try is cut off.
	if err := s.PutLabelled(ctx(), "app", "zz", []byte("new"), []byte("its own")); err != nil {
		t.Fatal(err)
	}
	if f := fileFormat(t, s); f != "2" {
		t.Fatalf("format %s", f)
	}
	if err := s.DeleteLetter(ctx(), "app", letterID(3)); err != nil {
		t.Fatal(err)
	}
	cut, cancel := context.WithCancel(ctx())
	if err := s.LabelLetters(cut, "app", func(id string, data []byte) []byte {
		if len(labelled) == 5250 {
			cancel()
		}
		return label(id, data)
	}); !errors.Is(err, context.Canceled) {
		t.Fatalf("cut off: %v", err)
	}
	mustClose(t, s)
	s = open(t, path)
	defer func() { mustClose(t, s) }()
	for range 2 {
		if err := s.LabelLetters(ctx(), "app", label); err != nil {
			t.Fatal(err)
		}
	}
	if slices.Contains(labelled, letterID(3)) || slices.Contains(labelled, "zz") || len(labelled) > n+400 {
		t.Errorf("%d letters were labelled", len(labelled))
	}
	labels, err := s.ListLabels(ctx(), "app", "", n+1000)
	if err != nil || len(labels) != n {
		t.Fatalf("%d labels, %v", len(labels), err)
	}
	for _, l := range labels[:n-1] {
		letter, _, err := s.GetLetter(ctx(), "app", l.ID)
		if err != nil || string(l.Data) != "label of "+string(letter) {
			t.Fatalf("%s: %q, %v", l.ID, l.Data, err)
		}
	}
	if string(labels[n-1].Data) != "its own" {
		t.Errorf("%q", labels[n-1].Data)
	}
}

func fileFormat(t *testing.T, s *Store) (format string) {
	t.Helper()
	if err := s.db.View(func(tx *bbolt.Tx) error {
		format = string(tx.Bucket(metaBucket).Get(formatKey))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return format
}
