package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func (r *release) buildAll() error {
	for _, t := range targets {
		r.binaries[t] = filepath.Join(r.work, t.String(), "sluice"+t.exe())
		if err := r.build(t, "./cmd/sluice", "lambda.norpc", r.binaries[t]); err != nil {
			return err
		}
		if err := r.build(t, "./cmd/sluice-local", "", r.local(t)); err != nil {
			return err
		}
	}
	return nil
}

// local is the path of sluice-local, which is in archives only.
func (r *release) local(t target) string {
	return filepath.Join(r.work, t.String(), "sluice-local"+t.exe())
}

// build compiles a command, which knows the commit and r's version, but no folder.
func (r *release) build(t target, pkg, tags, to string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=auto", "-tags", tags, //nolint:gosec // all arguments are from here
		"-ldflags", "-s -w -X github.com/sluicehq/sluice/internal/buildversion.release=v"+r.version, "-o", to, pkg)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-trimpath", "GOEXPERIMENT=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s for %s: %w\n%s", pkg, t, err, out)
	}
	return nil
}
