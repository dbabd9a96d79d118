package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/page"
	"github.com/sluicehq/sluice/streamtest"
)

// Kubernetes swaps a symbolic link in the path of a mounted file.
func TestReloadWatches(t *testing.T) {
	dir := t.TempDir()
	version := func(n int, text string) {
		name := fmt.Sprintf("..v%d", n)
		if err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o700), os.WriteFile(filepath.Join(dir, name, "routes"), []byte(text), 0o600),
			os.Symlink(name, filepath.Join(dir, "..tmp")), os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data"))); err != nil {
			t.Fatal(err)
		}
	}
	version(1, "route a ok\n")
	file := filepath.Join(dir, "routes")
	if err := os.Symlink("..data/routes", file); err != nil {
		t.Fatal(err)
	}
	noAWS(t)
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	c := startChild(t, "reloading", []string{reloadFileEnv + "=" + file, "SLUICE_WATCH=1"}, "--table", "orders", "--start", "TRIM_HORIZON",
		"--listen", "127.0.0.1:0", "--state", filepath.Join(t.TempDir(), "state.db"), "--endpoint-dynamodb", svc.URL())
	table.Put(map[string]any{"id": "one"})
	c.until("handled a one", 1)
	version(2, "route b ok\n")
	c.until("the new configuration runs", 1)
	table.Put(map[string]any{"id": "two"})
	c.until("handled b two", 1)
	version(3, "error this is bad\n")
	c.until("this is bad", 1)
	version(4, "route c ok\n")
	c.until("the new configuration runs", 2)
	table.Put(map[string]any{"id": "three"})
	c.until("handled c three", 1)
	if n := strings.Count(c.output(), "this is bad"); n != 1 {
		t.Errorf("a bad file is tried %d times", n)
	}
}

// A file that was refused while something was missing is tried again.
func TestReloadWatchesARefusedFile(t *testing.T) {
	r := startReloadable(t, "route a ok\n", "2m", "SLUICE_WATCH=1")
	r.write(t, "route b ok\ntable later\n")
	r.until("the configuration cannot be reloaded", 2)
	r.service.CreateTable("later", streamtest.TableOptions{PartitionKey: "id"})
	r.until("the new configuration runs", 1)
	r.put("one")
	r.until("handled b one", 1)

	r.write(t, "error this is bad\n")
	r.until("this is bad", 1)
	r.write(t, "route b ok\ntable later\n") // the good one again: the failure is over
	r.until("nothing is reloaded", 1)
}

// A file that runs already, after a reload at a signal, is not reloaded again: that would
// replace the outcome on the page.
func TestReloadWatchesNotWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		p := &process{}
		runs := func(digest string) {
			from := &Reloading{Watch: true, Loaded: digest, Digest: func() (string, error) { return digest, nil }}
			p.current.Store(&shownGeneration{generation: &generation{app: App{Reloading: from}}})
		}
		runs("old")
		l := newReloads(ctx, p)
		ended := make(chan struct{})
		go func() { defer close(ended); l.watch(ctx) }()
		time.Sleep(10 * time.Second)
		runs("new")
		l.mu.Lock()
		l.ended = &page.Reload{Outcome: page.Reloaded}
		l.mu.Unlock()
		time.Sleep(10 * time.Second)
		if last := l.last(); last.Outcome != page.Reloaded {
			t.Errorf("the outcome is %q", last.Outcome)
		}
		stop()
		<-ended
	})
}
