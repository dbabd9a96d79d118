// Package releasetest keeps what releases stored, for tests: this and each later
// release reads it. It is in testdata/v0.1.0 of the packages that store something.
// When the format of something changes, raise Release and run the test with -update: it
// writes a new folder, and never touches a file that exists.
package releasetest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Release is the last release that stores something in a new way.
const Release = "v0.1.0"

// Each has read a copy of the named file of each release. With update, write first
// makes that of Release, unless it exists.
func Each(t *testing.T, name string, update bool, write, read func(t *testing.T, path string)) {
	t.Helper()
	mine := filepath.Join("testdata", Release, name)
	if _, err := os.Stat(mine); update && os.IsNotExist(err) {
		made := filepath.Join(t.TempDir(), name)
		write(t, made)
		if err := os.MkdirAll(filepath.Dir(mine), 0o755); err != nil {
			t.Fatal(err)
		}
		copyFile(t, made, mine, 0o644)
	}
	all, err := filepath.Glob(filepath.Join("testdata", "v*", name))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(all, mine) {
		t.Fatalf("%s is missing: run this test once with -update, and commit the file", mine)
	}
	for _, file := range all {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			copyFile(t, file, path, 0o600)
			read(t, path)
		})
	}
}

// copyFile makes a new file.
func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
}
