package localstack

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// fetch returns the folder of a server or package that holds its lib/. If it is not in
// the cache, fill makes lib/ in a folder first. The pin says which version it is.
func fetch(ctx context.Context, o Options, name string, pin []byte, fill func(ctx context.Context, dir string) error) (string, error) {
	home := o.home(name, pin)
	tmp := home + ".part"
	return home, once(ctx, o, func() bool { return complete(home) }, tmp, func() error {
		fmt.Fprintf(o.Log, "fetching %s into %s (once, about a minute)\n", name, o.Dir)
		begin := time.Now()
		if err := fill(ctx, tmp); err != nil {
			return fmt.Errorf("fetching %s: %w", name, err)
		}
		if err := os.Rename(tmp, home); err != nil {
			return fmt.Errorf("cache folder: %w", err)
		}
		fmt.Fprintf(o.Log, "fetched %s in %v\n", name, time.Since(begin).Round(100*time.Millisecond))
		return nil
	})
}

// once calls fill with an empty folder tmp, unless what it makes is there. Processes take
// turns.
func once(ctx context.Context, o Options, there func() bool, tmp string, fill func() error) error {
	if there() {
		return nil
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fmt.Errorf("cache folder: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(o.Dir, "lock"))
	if err != nil {
		return fmt.Errorf("cache folder: %w", err)
	}
	defer unlock()
	if there() { // by whoever held the lock before
		return nil
	}
	// Under the lock no other process fills a folder, so an existing one is from an
	// interrupted process.
	if err := errors.Join(os.RemoveAll(tmp), os.Mkdir(tmp, 0o755)); err != nil {
		return fmt.Errorf("cache folder: %w", err)
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // the next process removes it
	return fill()
}

func (o Options) home(name string, pin []byte) string {
	return filepath.Join(o.Dir, fmt.Sprintf("%s-%.6x", name, sha256.Sum256(pin)))
}

func complete(home string) bool {
	info, err := os.Stat(filepath.Join(home, "lib"))
	return err == nil && info.IsDir()
}

// mavenResolve copies the dependencies of pom to dir/lib.
func mavenResolve(ctx context.Context, pom []byte, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "pom.xml"), pom, 0o600); err != nil {
		return fmt.Errorf("cache folder: %w", err)
	}
	return tool(ctx, dir, "mvn", "mvn", "-B", "-q", "-Dstyle.color=never", "--strict-checksums",
		"org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
		"-DoutputDirectory=lib", "-DincludeScope=runtime")
}

// tool runs a program in a folder. An error has the end of its output.
func tool(ctx context.Context, dir, name string, command ...string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, errors.Join(ctx.Err(), err), tail(out))
	}
	return nil
}
