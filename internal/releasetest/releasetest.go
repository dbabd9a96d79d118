// Package releasetest keeps what releases stored, for tests: this and each later
// release reads it. It is in testdata/v0.1.0 of the packages that store something.
// When the format of something changes, raise Release and run the test with -update: it
// writes a new folder, and never touches a file that exists.
package releasetest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Release is the last release that stores something in a new way.
const Release = "v0.1.0"

// Each has read a copy of the named file of each release. With update, write first
// makes that of Release, unless it exists. What write makes now has the fields of that
// file, if it is of JSON.
func Each(t *testing.T, name string, update bool, write, read func(t *testing.T, path string)) {
	t.Helper()
	mine := filepath.Join("testdata", Release, name)
	made := filepath.Join(t.TempDir(), name)
	write(t, made)
	if _, err := os.Stat(mine); update && os.IsNotExist(err) {
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
	if strings.Contains(filepath.Ext(name), "json") {
		if now, then := fields(t, made), fields(t, mine); !maps.Equal(now, then) {
			t.Errorf("%s is written with the fields\n%v\nthat of %s has\n%v\nA new format needs files of its own: raise Release", name, slices.Sorted(maps.Keys(now)), Release, slices.Sorted(maps.Keys(then)))
		}
	}
	for _, file := range all {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			copyFile(t, file, path, 0o600)
			read(t, path)
		})
	}
}

// fields are the paths of all fields in the documents of a file, as in "first.at" and
// "shards[].id".
func fields(t *testing.T, path string) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]bool)
	var add func(prefix string, v any)
	add = func(prefix string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				all[prefix+name] = true
				add(prefix+name+".", value)
			}
		case []any:
			for _, value := range v {
				add(strings.TrimSuffix(prefix, ".")+"[].", value)
			}
		}
	}
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var v any
		if err := d.Decode(&v); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		add("", v)
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
