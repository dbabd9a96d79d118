package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/localstack"
)

// tried runs the program in an empty folder with no programs but those of bin.
func tried(t *testing.T, bin string) (out string, err error) {
	t.Helper()
	cache := t.TempDir()
	t.Chdir(t.TempDir())
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	t.Setenv("PATH", bin)
	t.Setenv("JAVA_HOME", "")
	t.Setenv(localstack.EnvDynamoDB, "")
	t.Setenv(localstack.EnvSQS, "")
	var text strings.Builder
	cmd := command(&text, &text)
	cmd.SetArgs(nil)
	err = cmd.ExecuteContext(t.Context())
	if files, _ := filepath.Glob(filepath.Join(cache, "*")); len(files) > 0 {
		t.Errorf("it left %q in the cache", files)
	}
	return text.String(), err
}

func TestWithoutSluice(t *testing.T) {
	if _, err := tried(t, t.TempDir()); err == nil || !strings.Contains(err.Error(), "nor on PATH") {
		t.Errorf("it says %v", err)
	}
}

// Without Java it downloads nothing, and names Docker as the other way.
func TestWithoutJava(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "sluice"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := tried(t, bin)
	if err == nil || !strings.Contains(err.Error(), "Java 17") || !strings.Contains(err.Error(), "docker compose") {
		t.Errorf("it says %v", err)
	}
}
