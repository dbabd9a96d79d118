package daemon

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/snapshot"
)

// A mistyped path must not begin a new state: the daemon creates no folder, and reports
// the path before any call.
func TestStateFolderIsMissing(t *testing.T) {
	noAWS(t)
	dir := t.TempDir()
	state := filepath.Join(dir, "varr", "lib", "state.db")
	app := App{Name: "shop", Routes: func(context.Context, Setup) (sluice.Matcher, error) {
		t.Error("the routes are made")
		return nil, errors.New("never")
	}}
	want := []string{"--state (SLUICE_STATE)", "the folder " + filepath.Dir(state) + " of the state file does not exist", "mkdir -p " + filepath.Dir(state), "without positions"}
	expectExit(t, app, []string{"--table", "orders", "--start", "LATEST", "--state", state}, nil, 1, want...)

	err := Backfill(t.Context(), app, Options{Tables: []string{"orders"}, State: state, Grace: 1e9, LogFormat: "text", LogLevel: "info"},
		snapshot.Options{}, environment(nil), io.Discard)
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("a backfill does not say %q: %v", w, err)
		}
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Errorf("it has made %v, %v", made, err)
	}
}

// The daemon uses an existing folder, also the working directory by default.
func TestStateFolderIsThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"sluice.db", file, filepath.Join(file, "state.db")} { // what is wrong with the last, Open says
		if got, err := findState(state); err != nil || !filepath.IsAbs(got) {
			t.Errorf("%s: %s, %v", state, got, err)
		}
	}
}
