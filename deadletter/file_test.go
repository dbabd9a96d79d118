package deadletter

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/statetest"
	"github.com/sluicehq/sluice/state"
)

func openFile(t *testing.T, path string) *File {
	t.Helper()
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFileConformance(t *testing.T) {
	statetest.RunLetters(t, func(t *testing.T) state.Letters {
		f := openFile(t, filepath.Join(t.TempDir(), "dir", "letters.ndjson"))
		t.Cleanup(func() { f.Close() })
		return f
	})
}

func TestFileOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.ndjson")
	for mode, ok := range map[os.FileMode]bool{0o640: true, 0o600: true, 0o644: false, 0o604: false} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		f, err := OpenFile(path)
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "chmod o= "+path) {
			t.Errorf("mode %v: %v", mode, err)
		}
		if err == nil {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestFileAfterRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.ndjson")
	f := openFile(t, path)
	b := NewBox(f, "app")
	kept := park(t, b, record("a", 1), "r")
	gone := park(t, b, record("b", 2), "r")
	park(t, b, record("a", 1), "r")
	if err := b.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(path); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Fatalf("second OpenFile: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), kept); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("Delete after Close: %v", err)
	}
	for range 2 { // the second opens what the first has compacted
		f = openFile(t, path)
		if got := list(t, NewBox(f, "app")); !slices.Equal(got, []string{"test/1/r"}) {
			t.Fatalf("after a restart: %v", got)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		data, _ := os.ReadFile(path)
		if n := strings.Count(string(data), "\n"); n != 1 {
			t.Fatalf("%d lines after compaction, want 1:\n%s", n, data)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

// What is no JSON text, or not as it would be written, is kept as it is too.
func TestFileKeepsBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.ndjson")
	f := openFile(t, path)
	all := []string{"", "{}", `{"a": 1}`, " null", "null", "\x00\xff\n", "\"\u2028<&>\"", "1e5", `"\ud800"`}
	for i, data := range all {
		if err := f.PutLetter(t.Context(), "app", fmt.Sprint(i), []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		f.Close()
		f = openFile(t, path)
		for i, want := range all {
			if got, ok, err := f.GetLetter(t.Context(), "app", fmt.Sprint(i)); string(got) != want || !ok || err != nil {
				t.Errorf("after a restart %q is %q, %v, %v", want, got, ok, err)
			}
		}
	}
	f.Close()
}

// Another process may compact the file, and end, between our opening and our
// locking it: what we then have is the old file, which nobody will read again.
func TestFileReplacedBeforeTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.ndjson")
	b := NewBox(openFile(t, path), "app")
	park(t, b, record("a", 1), "r")
	park(t, b, record("a", 1), "r") // to be compacted
	if err := b.letters.(*File).Close(); err != nil {
		t.Fatal(err)
	}
	old, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := openFile(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if err := claim(old, path); err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("a lock on the old file was taken for one on the new: %v", err)
	}
}

func TestFileTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.ndjson")
	f := openFile(t, path)
	for i := range 3 {
		if err := f.PutLetter(t.Context(), "app", fmt.Sprint(i), []byte(`"`+strings.Repeat("long ", 12)+`"`)); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		f := openFile(t, path)
		want := strings.Count(string(whole[:cut]), "\n")
		if err := f.PutLetter(t.Context(), "app", "x", []byte(`"after"`)); err != nil {
			t.Fatal(err)
		}
		f.Close()
		f = openFile(t, path)
		letters, err := f.ListLetters(t.Context(), "app", "", 10)
		if err != nil || len(letters) != want+1 || string(letters[want].Data) != `"after"` {
			t.Fatalf("cut at %d: %d letters, %v; want %d", cut, len(letters), err, want+1)
		}
		f.Close()
	}
}

// Of the last line any part may be missing after a crash: what was not written
// reads as zeros. It is as if it had never been.
func TestFileTornSectors(t *testing.T) {
	const sector = 512
	path := filepath.Join(t.TempDir(), "letters.ndjson")
	f := openFile(t, path)
	for i := range 2 {
		if err := f.PutLetter(t.Context(), "app", fmt.Sprint(i), []byte(`"`+strings.Repeat("long ", 900)+`"`)); err != nil {
			t.Fatal(err)
		}
	}
	size := int(f.size)
	f.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.IndexByte(whole, '\n') + 1 // where the last begins
	last := make([]int, 0, 10)               // its sectors
	for at := line - line%sector; at < size; at += sector {
		last = append(last, at)
	}
	for mask := 0; mask < 1<<len(last)-1; mask += 7 { // bit: the sector was written
		image := bytes.Clone(whole)
		for i, at := range last {
			if mask&(1<<i) == 0 {
				clear(image[max(at, line):min(at+sector, size)])
			}
		}
		if err := os.WriteFile(path, image, 0o600); err != nil {
			t.Fatal(err)
		}
		f := openFile(t, path)
		letters, err := f.ListLetters(t.Context(), "app", "", 10)
		if err != nil || len(letters) != 1 || letters[0].ID != "0" {
			t.Fatalf("sectors %b written: %d letters, %v; want the first", mask, len(letters), err)
		}
		f.Close()
	}
}

func TestFileRefusesDamage(t *testing.T) {
	for name, content := range map[string]string{
		"line 2: ":                  `{"application":"a","id":"1","letter":{}}` + "\n{\n",
		"line 1: ":                  "{\x00\n" + `{"application":"a","id":"1","letter":{}}` + "\n", // acknowledged before another was
		"line 1 is not one of a de": `{"log":"line"}` + "\n",
	} {
		path := filepath.Join(t.TempDir(), "letters.ndjson")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFile(path); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want %q", err, name)
		}
		if after, _ := os.ReadFile(path); string(after) != content {
			t.Errorf("the refused file was changed to %q", after)
		}
	}
}

// A write that fails half way leaves no half line, and later ones succeed.
func TestFileWriteFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.ndjson")
	f := openFile(t, path)
	if err := f.PutLetter(t.Context(), "app", "1", []byte(`1`)); err != nil {
		t.Fatal(err)
	}
	whole := f.f
	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	f.f = readOnly
	if err := f.PutLetter(t.Context(), "app", "2", []byte(`2`)); err == nil || !strings.Contains(err.Error(), path) {
		t.Fatalf("PutLetter into a read-only file: %v", err)
	}
	f.f = whole
	// What could be neither written nor cut is not written to again.
	if err := f.PutLetter(t.Context(), "app", "3", []byte(`3`)); err == nil {
		t.Fatal("PutLetter after a failure that could not be undone succeeded")
	}
	if _, ok, _ := f.GetLetter(t.Context(), "app", "2"); ok {
		t.Error("a letter that was not stored is there")
	}
	f.Close()
}
