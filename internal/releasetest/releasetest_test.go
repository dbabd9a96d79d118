package releasetest

import (
	"os"
	"path/filepath"
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
	if Each(t, "state", false, nil, read); reads != 5 {
		t.Errorf("read %d times: want the files of two releases", reads)
	}
}
