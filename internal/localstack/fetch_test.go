package localstack

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// resolved plays a Maven that succeeds, in two steps with a gap between.
func resolved(_ context.Context, dir string) error {
	if err := os.Mkdir(filepath.Join(dir, "lib"), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "lib", "server.jar"), nil, 0o600)
}

func TestFetchOnce(t *testing.T) {
	o := Options{Dir: t.TempDir(), Log: io.Discard}
	home, err := fetch(t.Context(), o, "test", []byte("<project/>"), resolved)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(home, "lib", "server.jar")); err != nil {
		t.Fatal(err)
	}

	again, err := fetch(t.Context(), o, "test", []byte("<project/>"), func(context.Context, string) error {
		t.Error("resolved again")
		return nil
	})
	if err != nil || again != home {
		t.Errorf("second fetch: %q, %v; want %q", again, err, home)
	}

	other, err := fetch(t.Context(), o, "test", []byte("<project>newer</project>"), resolved)
	if err != nil || other == home {
		t.Errorf("fetch of a changed pom: %q, %v; want another folder than %q", other, err, home)
	}
}

func TestFetchCutOffLeavesNothing(t *testing.T) {
	o := Options{Dir: t.TempDir(), Log: io.Discard}
	boom := errors.New("no network")
	half := func(ctx context.Context, dir string) error {
		if err := os.Mkdir(filepath.Join(dir, "lib"), 0o755); err != nil {
			return err
		}
		return boom
	}
	if _, err := fetch(t.Context(), o, "test", []byte("<project/>"), half); !errors.Is(err, boom) {
		t.Fatalf("error %v, want %v", err, boom)
	}

	// A process that was killed could not clean up.
	var killed string
	func() {
		defer func() { _ = recover() }()
		fetch(t.Context(), Options{Dir: o.Dir, Log: io.Discard}, "test", []byte("<project/>"), func(_ context.Context, dir string) error {
			killed = dir
			panic("killed")
		})
	}()
	if err := os.MkdirAll(filepath.Join(killed, "lib", "half"), 0o755); err != nil {
		t.Fatal(err)
	}

	home, err := fetch(t.Context(), o, "test", []byte("<project/>"), resolved)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(home, "lib", "half")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the killed fetch left is in the result: %v", err)
	}
}

func TestFetchTakesTurns(t *testing.T) {
	o := Options{Dir: t.TempDir(), Log: io.Discard}
	var running, most, runs atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := fetch(t.Context(), o, "test", []byte("<project/>"), func(ctx context.Context, dir string) error {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				runs.Add(1)
				return resolved(ctx, dir)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most.Load() != 1 || runs.Load() != 1 {
		t.Errorf("%d fetches, %d at once; want 1 and 1", runs.Load(), most.Load())
	}
}

func TestFetchGivesUpWaitingForTheLock(t *testing.T) {
	o := Options{Dir: t.TempDir(), Log: io.Discard}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := fetch(t.Context(), o, "test", []byte("<project/>"), func(context.Context, string) error {
		cancel()
		_, err := fetch(ctx, o, "test", []byte("<project/>"), resolved)
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}
