package releasetest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A file that a release has written is never written again, and a reader gets a copy.
func TestEachKeepsWhatIsThere(t *testing.T) {
	t.Chdir(t.TempDir())
	file := filepath.Join("testdata", Release, "state")
	written, reads := "first", 0
	write := func(t *testing.T, path string) {
		if err := os.WriteFile(path, []byte(written), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(t *testing.T, path string) {
		reads++
		data, err := os.ReadFile(path)
		if err != nil || string(data) != "first" {
			t.Errorf("%q, %v", data, err)
		}
		write(t, path)
	}
	for _, update := range []bool{true, false, true} {
		Each(t, "state", update, write, read)
		written = "later"
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "first" || reads != 3 {
		t.Errorf("%q, %v, read %d times", data, err, reads)
	}
	for _, other := range []string{"v0.2.0", "other"} {
		if err := os.MkdirAll(filepath.Join("testdata", other), 0o700); err != nil {
			t.Fatal(err)
		}
		copyFile(t, file, filepath.Join("testdata", other, "state"), 0o600)
	}
	if Each(t, "state", false, write, read); reads != 5 {
		t.Errorf("read %d times: want the files of two releases", reads)
	}
}

// What is written with one field more has no file yet.
func TestFields(t *testing.T) {
	of := func(text string) []string {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(maps.Keys(fields(t, path)))
	}
	if got, want := of(`{"id":"1","at":{"day":1}}`+"\n"+`{"id":"2","keys":[{"pk":1},[{"sk":2}]]}`), []string{"at", "at.day", "id", "keys", "keys[].pk", "keys[][].sk"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
