package localstack

import (
	"bytes"
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
	if complete(home) {
		return home, nil
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(o.Dir, "lock"))
	if err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	defer unlock()
	if complete(home) { // by whoever held the lock before
		return home, nil
	}

	// Under the lock no other process fetches, so an existing folder is from an
	// interrupted fetch.
	tmp := home + ".part"
	if err := os.RemoveAll(tmp); err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // the next fetch removes it
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	fmt.Fprintf(o.Log, "fetching %s into %s (once, about a minute)\n", name, o.Dir)
	begin := time.Now()
	if err := fill(ctx, tmp); err != nil {
		return "", fmt.Errorf("fetching %s: %w", name, err)
	}
	if err := os.Rename(tmp, home); err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	fmt.Fprintf(o.Log, "fetched %s in %v\n", name, time.Since(begin).Round(100*time.Millisecond))
	return home, nil
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
	cmd := exec.CommandContext(ctx, "mvn", "-B", "-q", "-Dstyle.color=never", "--strict-checksums",
		"org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
		"-DoutputDirectory=lib", "-DincludeScope=runtime")
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("mvn: %w\n%s", errors.Join(ctx.Err(), err), tail(out.Bytes()))
	}
	return nil
}
