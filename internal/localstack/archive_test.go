package localstack

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The first start makes the file, and later ones use it.
func TestArchived(t *testing.T) {
	o := Options{Dir: t.TempDir(), Log: io.Discard, Timeout: time.Minute}
	home := filepath.Join(o.Dir, "test-1")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	// A run that was killed has left half a file.
	if err := os.Mkdir(home+".archive", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home+".archive", "classes.jsa"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"archive", "crash"} { // nothing is started the second time
		t.Setenv(roleEnv, role)
		options, err := archived(t.Context(), o, testServer(nil), os.Args[0], home)
		if err != nil || len(options) != 1 {
			t.Fatalf("options %q, %v", options, err)
		}
		file, ok := strings.CutPrefix(options[0], "-XX:SharedArchiveFile=")
		if got, err := os.ReadFile(file); !ok || string(got) != "classes" {
			t.Errorf("%s: the file holds %q, %v", options[0], got, err)
		}
	}
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) != 2 { // home and the lock
		t.Errorf("left: %v, %v", left, err)
	}
}

// If Java cannot make the archive, it is asked once.
func TestArchivedByNoJava(t *testing.T) {
	for _, role := range []string{"serve", "crash"} {
		o := Options{Dir: t.TempDir(), Log: io.Discard, Timeout: time.Minute}
		for range 2 {
			t.Setenv(roleEnv, role)
			options, err := archived(t.Context(), o, testServer(nil), os.Args[0], o.Dir)
			if err != nil || len(options) != 0 {
				t.Errorf("%s: options %q, %v", role, options, err)
			}
			role = "no such role" // the test binary would run its tests
		}
	}
}

// A start that was given up says nothing about the Java.
func TestArchivedGivesUp(t *testing.T) {
	t.Setenv(roleEnv, "hang")
	o := Options{Dir: t.TempDir(), Log: io.Discard, Timeout: time.Minute}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := archived(ctx, o, testServer(nil), os.Args[0], o.Dir); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if found, _ := filepath.Glob(filepath.Join(o.Dir, "*.jsa")); len(found) != 0 {
		t.Errorf("left: %v", found)
	}
}
